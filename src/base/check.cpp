#include "base/check.h"

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace gruca::internal {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
    std::fprintf(stderr, "CHECK failed at %s:%d: %s: %s\n", file, line, condition, message.c_str());
    constexpr int kFramesMax = 64;
    std::array<void*, kFramesMax> frames;
    const int count = ::backtrace(frames.data(), kFramesMax);
    ::backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
    std::abort();
}

}  // namespace gruca::internal
