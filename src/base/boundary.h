// base/boundary.h
//
// The only place that catches everything. Code below a boundary throws freely; a boundary turns
// whatever arrives into an Error value, once, and hands it to whoever must act: an HTTP reply, an
// exit code, a log line, the consumer of a queue.
#pragma once

#include <optional>
#include <utility>

#include "base/error.h"

namespace gruca {

// Turns the exception being handled into an Error: an Error stays itself, bad_alloc becomes
// resource_exhausted, std::system_error the code of its errno, anything else internal.
// Call only inside a catch block.
Error error_in_flight();

// Runs `body`; returns what went wrong, or nothing.
template <class Body>
std::optional<Error> run_guarded(Body&& body) {
    try {
        std::forward<Body>(body)();
        return std::nullopt;
    } catch (...) {
        return error_in_flight();
    }
}

}  // namespace gruca
