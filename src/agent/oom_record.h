// agent/oom_record.h
//
// Whom the kernel killed for want of memory, from its own log.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace gruca::agent {

// The name of the process that was killed last in the control group of that name, from one record
// of the kernel's log: "oom-kill:…,task_memcg=/gruca/<group>,task=python3,pid=7,uid=0".
std::optional<std::string> oom_victim_in(std::string_view record, const std::string& group);

// Of all records that the log still has. Nothing when there is none or the log cannot be read.
std::optional<std::string> oom_victim(const std::string& group,
                                      const std::filesystem::path& log = "/dev/kmsg");

}  // namespace gruca::agent
