// agent/exception_line.h
//
// The one line of a log that says why a program failed. Pure.
#pragma once

#include <string>
#include <string_view>

namespace gruca::agent {

// "ValueError: shapes differ": the end of the last Python traceback, or what() of the last C++
// exception. One that only follows from the failure of another process (a launcher's report, a
// connection that the other side has closed, a timeout, an interrupt) counts only when there is no
// other. A prefix that all lines of a traceback share ("[rank5]: ") is left out; of exceptions with
// different prefixes the first counts, which is where the failure began, and one with a prefix
// counts more than one without. Empty: nothing found.
std::string exception_line(std::string_view log);

}  // namespace gruca::agent
