// control/requests.h
//
// The API's commands on jobs, each answered by one Reply.
#pragma once

#include "control/change.h"

namespace gruca::control {

void handle(Change& change, const CreateJob& command);
void handle(Change& change, const StopJob& command);
void handle(Change& change, const AddTags& command);
void handle(Change& change, const DeleteTags& command);

}  // namespace gruca::control
