// spec/output_parts.h
//
// Where the nodes of a job put their parts of its outputs until the first one merges them:
// ".gruca/parts/<job>/<host>/<output>.tar" in the store. The agents write and merge them; when a
// job is over the service removes what is left.
#pragma once

#include <string>

namespace gruca::spec {

inline std::string parts_prefix(const std::string& job_name) {
    return ".gruca/parts/" + job_name + "/";
}

}  // namespace gruca::spec
