// base/check.h
//
// CHECK(index < count, "shard index {} of {}", index, count) states what must hold whatever the
// input is. When it does not hold, the program has a bug: values and stack are printed and it
// aborts. Wrong input is not a bug; throw Error for that. DCHECK is the same, in debug builds only.
#pragma once

#include <fmt/format.h>

#include <string>

namespace gruca::internal {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace gruca::internal

#define CHECK(condition, ...)                                               \
    do {                                                                    \
        if (!(condition)) [[unlikely]] {                                    \
            ::gruca::internal::check_failed(__FILE__, __LINE__, #condition, \
                                            ::fmt::format("" __VA_ARGS__)); \
        }                                                                   \
    } while (false)

#ifdef NDEBUG
#define DCHECK(condition, ...) \
    do {                       \
    } while (false && (condition))
#else
#define DCHECK(condition, ...) CHECK(condition, __VA_ARGS__)
#endif
