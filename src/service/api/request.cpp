#include "service/api/request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "base/error.h"
#include "spec/pattern.h"

namespace gruca::service::api {
namespace {

// Beyond these, seconds do not fit into a TimePoint; the year 9999 does.
constexpr double kSecondsMax = 253402300799.0;

// The patterns of rules are few and in the program, and making one costs more than matching it.
const spec::Pattern& compiled(std::string_view pattern) {
    static std::mutex mutex;  // Guards the map; what is in it stays.
    static std::map<std::string_view, spec::Pattern> patterns;
    const std::lock_guard lock(mutex);
    return patterns.try_emplace(pattern, pattern).first->second;
}

}  // namespace

const Json* RequestReader::find(std::string_view member, bool required) {
    const Json* value = request_.find(member);
    if (value == nullptr && required) {
        violations_.add(Json(), spec::lower_camel(member), "Member must not be null");
    }
    return value;
}

void RequestReader::check(const Json& value, const std::string& path, const TextRule& rule) {
    if (!value.is_string()) {
        violations_.add(value, path, "Member must be a string");
        return;
    }
    const std::string& text = value.as_string();
    const std::size_t length = spec::utf16_length(text);
    if (length > rule.length_max) {
        violations_.add(
            value, path,
            fmt::format("Member must have length less than or equal to {}", rule.length_max));
    }
    if (length < rule.length_min) {
        violations_.add(
            value, path,
            fmt::format("Member must have length greater than or equal to {}", rule.length_min));
    }
    if (!rule.values.empty() &&
        std::find(rule.values.begin(), rule.values.end(), text) == rule.values.end()) {
        violations_.add(
            value, path,
            fmt::format("Member must satisfy enum value set: [{}]", fmt::join(rule.values, ", ")));
    }
    if (!rule.pattern.empty() && !compiled(rule.pattern).matches(text)) {
        violations_.add(
            value, path,
            fmt::format("Member must satisfy regular expression pattern: {}", rule.pattern));
    }
}

std::string RequestReader::text(std::string_view member, const TextRule& rule) {
    const Json* value = find(member, rule.required);
    if (value == nullptr) return "";
    check(*value, spec::lower_camel(member), rule);
    return value->is_string() ? value->as_string() : "";
}

std::int64_t RequestReader::integer(std::string_view member, const IntegerRule& rule) {
    const Json* value = find(member, false);
    if (value == nullptr) return rule.otherwise;
    const std::string path = spec::lower_camel(member);
    if (!value->is_int()) {
        violations_.add(*value, path, "Member must be an integer");
        return rule.otherwise;
    }
    const std::int64_t number = value->as_int();
    if (number > rule.max) {
        violations_.add(*value, path,
                        fmt::format("Member must have value less than or equal to {}", rule.max));
    }
    if (number < rule.min) {
        violations_.add(
            *value, path,
            fmt::format("Member must have value greater than or equal to {}", rule.min));
    }
    return number;
}

bool RequestReader::boolean(std::string_view member, bool otherwise) {
    const Json* value = find(member, false);
    if (value == nullptr) return otherwise;
    if (value->is_bool()) return value->as_bool();
    violations_.add(*value, spec::lower_camel(member), "Member must be a boolean");
    return otherwise;
}

std::optional<TimePoint> RequestReader::seconds(std::string_view member) {
    const Json* value = find(member, false);
    if (value == nullptr) return std::nullopt;
    if (value->is_number() && std::fabs(value->as_double()) <= kSecondsMax) {
        return time_from_ms(std::llround(value->as_double() * 1000));
    }
    if (value->is_string()) {
        try {
            return time_from_iso8601(value->as_string());
        } catch (const Error&) {  // Listed below with everything else that is wrong.
        }
    }
    violations_.add(*value, spec::lower_camel(member), "Member must be a timestamp");
    return std::nullopt;
}

std::optional<TimePoint> RequestReader::milliseconds(std::string_view member) {
    if (find(member, false) == nullptr) return std::nullopt;
    return time_from_ms(
        integer(member, {.min = 0, .max = static_cast<std::int64_t>(kSecondsMax) * 1000}));
}

std::vector<std::string> RequestReader::texts(std::string_view member, std::size_t count_min,
                                              std::size_t count_max, const TextRule& each) {
    std::vector<std::string> found;
    const Json* value = find(member, each.required);
    if (value == nullptr) return found;
    const std::string path = spec::lower_camel(member);
    if (!value->is_array()) {
        violations_.add(*value, path, "Member must be a list");
        return found;
    }
    const Json::Array& items = value->as_array();
    if (items.size() > count_max) {
        violations_.add(*value, path,
                        fmt::format("Member must have length less than or equal to {}", count_max));
        return found;
    }
    if (items.size() < count_min) {
        violations_.add(
            *value, path,
            fmt::format("Member must have length greater than or equal to {}", count_min));
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
        check(items[i], fmt::format("{}.{}.member", path, i + 1), each);
        if (items[i].is_string()) found.push_back(items[i].as_string());
    }
    return found;
}

TextRule job_name_rule() {
    return {.length_min = 1,
            .length_max = 63,
            .pattern = "^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}",
            .required = true};
}

TextRule resource_arn_rule() {
    return {.length_max = 256,
            .pattern = "^arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:[0-9]{12}:.+$",
            .required = true};
}

}  // namespace gruca::service::api
