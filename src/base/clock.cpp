#include "base/clock.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"

namespace gruca {
namespace {

using std::chrono::floor;

struct Civil {
    int year, hour, minute, second, ms;
    unsigned month, day;
};

Civil civil_of(TimePoint time) {
    const auto days = floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(days);
    const std::chrono::hh_mm_ss clock(time - days);
    return {.year = static_cast<int>(date.year()),
            .hour = static_cast<int>(clock.hours().count()),
            .minute = static_cast<int>(clock.minutes().count()),
            .second = static_cast<int>(clock.seconds().count()),
            .ms = static_cast<int>(clock.subseconds().count()),
            .month = static_cast<unsigned>(date.month()),
            .day = static_cast<unsigned>(date.day())};
}

// Whether `text` begins with `form`: 'd' stands for a digit, anything else for itself.
bool has_form(std::string_view text, std::string_view form) {
    if (text.size() < form.size()) return false;
    for (std::size_t i = 0; i < form.size(); ++i) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (form[i] == 'd' ? !digit : text[i] != form[i]) return false;
    }
    return true;
}

}  // namespace

TimePoint SystemClock::now() const {
    return floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

std::chrono::steady_clock::time_point SystemClock::steady_now() const {
    return std::chrono::steady_clock::now();
}

std::string iso8601(TimePoint time) {
    const Civil c = civil_of(time);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", c.year, c.month, c.day, c.hour,
                       c.minute, c.second, c.ms);
}

std::string iso8601_basic(TimePoint time) {
    const Civil c = civil_of(time);
    return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", c.year, c.month, c.day, c.hour, c.minute,
                       c.second);
}

TimePoint time_from_iso8601(const std::string& text) {
    const bool extended = has_form(text, "dddd-dd-ddTdd:dd:dd");
    const bool basic = has_form(text, "ddddddddTdddddd");
    // Where the numbers stand: both forms have them in one order, one has marks between.
    const std::size_t mark = extended ? 1 : 0;
    const auto number = [&](std::size_t at, std::size_t digits) {
        return extended || basic ? std::stoi(text.substr(at, digits)) : 0;
    };
    const int hour = number(9 + 2 * mark, 2);
    const int minute = number(11 + 3 * mark, 2);
    const int second = number(13 + 4 * mark, 2);
    const std::chrono::year_month_day date(
        std::chrono::year(number(0, 4)),
        std::chrono::month(static_cast<unsigned>(number(4 + mark, 2))),
        std::chrono::day(static_cast<unsigned>(number(6 + 2 * mark, 2))));
    std::string rest = extended || basic ? text.substr(15 + 4 * mark) : "";
    int ms = 0;
    if (rest.size() >= 2 && rest[0] == '.') {
        const std::size_t end = rest.find_first_not_of("0123456789", 1);
        const std::string digits = (rest.substr(1, end - 1) + "000").substr(0, 3);
        ms = std::stoi(digits);
        rest = end == std::string::npos ? "" : rest.substr(end);
    }
    const bool right = (extended || basic) && date.ok() && hour < 24 && minute < 60 && second < 61;
    if (!right || (rest != "Z" && rest != "+00:00" && !rest.empty())) {
        throw Error(ErrorCode::invalid_argument, "not a UTC time of ISO 8601: " + text);
    }
    return TimePoint(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
           std::chrono::minutes(minute) + std::chrono::seconds(second) + Duration(ms);
}

}  // namespace gruca
