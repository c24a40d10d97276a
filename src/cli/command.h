// cli/command.h
//
// A command is a shape and what it does. Each file of commands gives its list; cli/gruca.cpp puts
// the lists together.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/context.h"

namespace gruca::cli {

constexpr int kExitJobFailed = 20;     // The job that was waited for has failed.
constexpr int kExitInterrupted = 130;  // Ctrl-C ended the waiting, not the job.

struct Command {
    CommandShape shape;
    int (*run)(Context& context, const Arguments& arguments);  // Returns the exit code.
};

std::vector<Command> service_commands();
std::vector<Command> job_commands();
std::vector<Command> store_commands();
std::vector<Command> data_commands();
std::vector<Command> model_commands();
std::vector<Command> doctor_commands();

// Options that many commands share.
OptionShape data_dir_option();
OptionShape json_option();

// The service that --data-dir or the environment chooses.
std::unique_ptr<Api> connect(Context& context, const Arguments& arguments, bool patient = false);

// Prints an API's answer as it is.
void print_json(Context& context, const Json& answer);

}  // namespace gruca::cli
