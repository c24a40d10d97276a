// base/temporaries.h
//
// The file beside a file in which its next content is made ready, before it is renamed over it. A
// process that is killed meanwhile leaves it behind, with whatever secret the file holds; whoever
// owns the file sweeps when it starts.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.h"

namespace gruca {

struct Temporary {
    UniqueFd fd;
    std::string path;  // "…/credentials.gruca-Ab3x9Z"
};

// Nobody else's to sweep as long as `fd` is open.
Temporary make_temporary(const std::filesystem::path& beside);

// Removes what dead processes have left beside `path`, and nothing else.
void sweep_temporaries(const std::filesystem::path& path);

}  // namespace gruca
