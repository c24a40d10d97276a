// cli/gruca.h
//
// The program `gruca`: finds the command, parses its words, runs it, and turns a failure into one
// line on standard error and an exit code (base/error.h; kExitJobFailed and kExitInterrupted of
// cli/command.h besides).
#pragma once

#include <string>
#include <vector>

#include "cli/context.h"

namespace gruca::cli {

// `words` without the program's name. Catches everything.
int run_gruca(Context& context, const std::vector<std::string>& words);

// docs/reference/command-line.md: the help of every command, and the exit codes.
std::string command_line_page();

}  // namespace gruca::cli
