#include "base/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "base/temporaries.h"
#include "base/text.h"

namespace gruca {

void replace_file(const std::filesystem::path& path, std::string_view content, unsigned mode) {
    require_replaceable(path);
    const auto [fd, fresh] = make_temporary(path);
    try {
        if (::fchmod(fd.get(), mode) != 0) throw_errno("cannot set the mode");
        write_all(fd.get(), bytes_of(content));
        if (::rename(fresh.c_str(), path.c_str()) != 0) throw_errno("cannot rename");
    } catch (Error& error) {
        ::unlink(fresh.c_str());
        error.add_context("writing " + path.string());
        throw;
    }
}

}  // namespace gruca
