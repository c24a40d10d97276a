// spec/parts.h
//
// JSON of the small parts that a task and a job share. Readers throw invalid_argument.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/json.h"
#include "spec/node.h"

namespace gruca::spec {

// Numbers that do not fit are refused: an exit code of 2^32 must not become 0, which is success.
int int32_from(const Json& json);
std::chrono::seconds seconds_from(const Json& json);  // 0 to a hundred years.

Json to_json(const std::vector<std::string>& texts);
std::vector<std::string> texts_from_json(const Json& json);

Json to_json(const std::vector<TaskChannel>& channels);
std::vector<TaskChannel> channels_from_json(const Json& json);

Json to_json(const TaskCheckpoint& checkpoint);
TaskCheckpoint checkpoint_from_json(const Json& json);

}  // namespace gruca::spec
