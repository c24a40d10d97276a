#include "net/call_wait.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace gruca::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kCancelPoll{100};

std::optional<steady_clock::time_point> end_of(const Clock& clock,
                                               std::optional<milliseconds> time) {
    if (!time) return std::nullopt;
    return clock.steady_now() + *time;
}

}  // namespace

CallWait::CallWait(std::optional<milliseconds> time, std::optional<StallLimit> stall,
                   const std::function<bool()>& cancelled)
    : end_(end_of(clock_, time)), stall_(stall), cancelled_(cancelled) {
    if (stall_) patience_left_ = stall_->time;
}

void CallWait::throw_if_cancelled() const {
    if (cancelled_ && cancelled_()) throw Error(ErrorCode::cancelled, "the call was cancelled");
}

std::optional<short> CallWait::wait(int fd, short events, std::optional<milliseconds> time_max) {
    const auto own_end = end_of(clock_, time_max);
    for (;;) {
        throw_if_cancelled();
        const auto begin = clock_.steady_now();
        milliseconds slice = kCancelPoll;
        for (const auto& end : {end_, own_end}) {
            if (end) slice = std::min(slice, std::chrono::ceil<milliseconds>(*end - begin));
        }
        const bool is_over = slice <= milliseconds(0);
        pollfd waited{.fd = fd, .events = events, .revents = 0};
        const int ready = ::poll(&waited, 1, is_over ? 0 : static_cast<int>(slice.count()));
        if (ready < 0 && errno != EINTR) throw_errno("poll");
        if (stall_) patience_left_ -= clock_.steady_now() - begin;
        if (ready > 0) return waited.revents;
        if (is_over || (stall_ && patience_left_.count() <= 0)) return std::nullopt;
    }
}

void CallWait::moved(std::uint64_t bytes) {
    moved_ += bytes;
    if (!stall_ || moved_ < stall_->bytes) return;
    moved_ = 0;
    patience_left_ = stall_->time;
}

}  // namespace gruca::net
