// spec/rules.h
//
// What the members of CreateTrainingJob mean together, beyond the table: images and their
// entrypoints, channels and their sources, paths that belong to the platform, tags.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "spec/violations.h"

namespace gruca::spec {

// `request` has passed check_members: everything has its kind and what must be there is.
void check_together(const Json& request, Violations& violations);
void check_tags_together(const Json& tags, std::string_view path, Violations& violations);

std::string without_trailing_slashes(std::string text);

}  // namespace gruca::spec
