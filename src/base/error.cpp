#include "base/error.h"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace gruca {
namespace {

struct CodeFacts {
    std::string_view name;
    int http_status;
    bool retryable;
    int exit_code;
};

// One row per ErrorCode, in its order. Everything that maps a code to something reads this table.
constexpr std::array<CodeFacts, 11> kFacts = {{
    {"invalid_argument", 400, false, 2},
    {"not_found", 404, false, 3},
    {"already_exists", 409, false, 4},
    {"precondition_failed", 412, false, 5},
    {"permission_denied", 403, false, 6},
    {"resource_exhausted", 429, true, 7},
    {"unavailable", 503, true, 8},
    {"deadline_exceeded", 504, true, 9},
    {"cancelled", 499, false, 10},
    {"data_loss", 500, false, 11},
    {"internal", 500, false, 1},
}};
static_assert(kFacts.size() == static_cast<std::size_t>(ErrorCode::internal) + 1);

const CodeFacts& facts(ErrorCode code) {
    return kFacts[static_cast<std::size_t>(code)];
}

}  // namespace

std::string_view name(ErrorCode code) {
    return facts(code).name;
}

int http_status(ErrorCode code) {
    return facts(code).http_status;
}

bool is_retryable(ErrorCode code) {
    return facts(code).retryable;
}

int exit_code(ErrorCode code) {
    return facts(code).exit_code;
}

ErrorCode code_of_errno(int errno_value) {
    switch (errno_value) {
        case ENOENT:
        case ENOTDIR:
        case ESRCH:
            return ErrorCode::not_found;
        case EEXIST:
        case ENOTEMPTY:
            return ErrorCode::already_exists;
        case EACCES:
        case EPERM:
        case EROFS:
            return ErrorCode::permission_denied;
        case ENOSPC:
        case EDQUOT:
        case EMFILE:
        case ENFILE:
        case ENOMEM:
            return ErrorCode::resource_exhausted;
        case EINVAL:
        case ENAMETOOLONG:
        case ELOOP:
        case EISDIR:
            return ErrorCode::invalid_argument;
        case ETIMEDOUT:
            return ErrorCode::deadline_exceeded;
        case EAGAIN:
        case EBUSY:
        case ECONNREFUSED:
        case ECONNRESET:
        case EPIPE:
        case EADDRINUSE:
        case EHOSTUNREACH:
        case ENETUNREACH:
            return ErrorCode::unavailable;
        case ECANCELED:
            return ErrorCode::cancelled;
        case EIO:
            return ErrorCode::data_loss;
        default:
            return ErrorCode::internal;
    }
}

void throw_errno(std::string_view activity, std::source_location where) {
    const int saved = errno;
    throw Error(code_of_errno(saved),
                std::string(activity) + ": " + std::generic_category().message(saved), where);
}

Error::Error(ErrorCode code, std::string message, std::source_location where)
    : code_(code), message_(std::move(message)), where_(where) {
    compose();
}

void Error::add_context(std::string_view activity) {
    message_.append("; while ").append(activity);
    compose();
}

void Error::compose() {
    std::string_view file = where_.file_name();
    file = file.substr(file.find_last_of('/') + 1);
    what_ = std::string(name(code_)) + ": " + message_ + " [" + std::string(file) + ":" +
            std::to_string(where_.line()) + "]";
}

}  // namespace gruca
