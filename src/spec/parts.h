// spec/parts.h
//
// JSON of the small parts that a task and a job share. Readers throw invalid_argument.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "spec/node.h"

namespace gruca::spec {

Json to_json(const std::vector<std::string>& texts);
std::vector<std::string> texts_from_json(const Json& json);

Json to_json(const std::vector<TaskChannel>& channels);
std::vector<TaskChannel> channels_from_json(const Json& json);

Json to_json(const TaskCheckpoint& checkpoint);
TaskCheckpoint checkpoint_from_json(const Json& json);

}  // namespace gruca::spec
