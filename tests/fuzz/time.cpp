// What is read as a time is written as the same time, in both forms.

#include "base/clock.h"
#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gruca::TimePoint time;
    if (!gruca::fuzz::takes(
            [&] { time = gruca::time_from_iso8601(gruca::fuzz::text_of(data, size)); })) {
        return 0;
    }
    CHECK(gruca::time_from_iso8601(gruca::iso8601(time)) == time, "{}", gruca::iso8601(time));
    const gruca::TimePoint whole = std::chrono::floor<std::chrono::seconds>(time);
    CHECK(gruca::time_from_iso8601(gruca::iso8601_basic(time)) == whole, "{}",
          gruca::iso8601_basic(time));
    return 0;
}
