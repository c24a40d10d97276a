// spec/violations.h
//
// What is wrong with a request, collected and told at once, in the API's words:
//
//   2 validation errors detected: Value 'a_b' at 'trainingJobName' failed to satisfy constraint:
//   Member must satisfy regular expression pattern: …; Value null at 'roleArn' failed to satisfy
//   constraint: Member must not be null
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "spec/members.h"

namespace gruca::spec {

class Violations {
  public:
    // `path` is in the API's spelling: "inputDataConfig.1.member.channelName".
    void add(const Json& value, std::string_view path, std::string_view constraint);
    bool empty() const { return count_ == 0; }
    // Throws invalid_argument when there is any.
    void throw_if_any() const;

  private:
    std::size_t count_ = 0;
    std::vector<std::string> listed_;  // At most kListedMax of them.
};

// Holds `value` against its rows: kind, limits, pattern, values, required members, and whether
// gruca does what it asks for.
void check_member(const Member& member, const Json& value, const std::string& path,
                  Violations& violations);
void check_members(const Member& structure, const Json& value, const std::string& path,
                   Violations& violations);

std::string lower_camel(std::string_view name);  // "S3Uri" -> "s3Uri"

}  // namespace gruca::spec
