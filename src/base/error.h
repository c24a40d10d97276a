// base/error.h
//
// How this product fails. Three kinds of failure, one mechanism each:
//
//   a bug        CHECK(index < count, "shard index {}", index)  aborts; nobody catches it.
//   a failure    throw Error(ErrorCode::unavailable, "...")      unwinds to a boundary.
//   an outcome   std::optional, bool or a small enum             an ordinary return value.
//
// The code says what the caller can do about it; the message says what happened, for a person who
// has never seen this source. Values go last: "bucket does not exist: training-data".
#pragma once

#include <exception>
#include <source_location>
#include <string>
#include <string_view>

namespace gruca {

// Ordered as in the table of error.cpp, which gives each its HTTP status and exit code.
enum class ErrorCode {
    invalid_argument,     // The request is wrong; sending it again will not help.
    not_found,            // The named thing does not exist.
    already_exists,       // The named thing exists and must not.
    precondition_failed,  // The thing is in the wrong state, or changed under the caller.
    permission_denied,    // Known caller, not allowed.
    resource_exhausted,   // Quota, disk, memory or a queue is full.
    unavailable,          // A peer is down or slow; retry with back-off.
    deadline_exceeded,    // Gave up waiting; the effect is unknown.
    cancelled,            // Someone asked this to stop.
    data_loss,            // Stored bytes are missing or fail their checksum.
    internal,             // A defect surfaced as a failure rather than as an abort.
};

std::string_view name(ErrorCode code);
int http_status(ErrorCode code);
bool is_retryable(ErrorCode code);
int exit_code(ErrorCode code);  // Of a program that ends with it; never 0, 1 only for internal.
ErrorCode code_of_errno(int errno_value);

class Error : public std::exception {
  public:
    Error(ErrorCode code, std::string message,
          std::source_location where = std::source_location::current());

    ErrorCode code() const noexcept { return code_; }
    const std::string& message() const noexcept { return message_; }
    const std::source_location& where() const noexcept { return where_; }

    // "unavailable: cannot reach s3:9000; while uploading part 3 of ckpt/100 [http.cpp:71]"
    const char* what() const noexcept override { return what_.c_str(); }

    // Appends "; while <activity>" on the way up. Use at most once per layer, then `throw;`.
    void add_context(std::string_view activity);

  private:
    void compose();

    ErrorCode code_;
    std::string message_;
    std::source_location where_;
    std::string what_;
};

// Throws the Error for the current errno: "cannot open /x/y: No such file or directory".
[[noreturn]] void throw_errno(std::string_view activity,
                              std::source_location where = std::source_location::current());

}  // namespace gruca
