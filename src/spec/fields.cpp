#include "spec/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace gruca::spec {
namespace {

[[noreturn]] void throw_not_a(const char* wanted, std::string_view key, std::string_view text) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} must be {}, and is: '{}'", key, wanted, text));
}

}  // namespace

void set_field(std::string_view key, std::string_view text, bool& field) {
    const std::string word = to_lower(trim(text));
    if (word != "true" && word != "false" && word != "1" && word != "0") {
        throw_not_a("true or false", key, text);
    }
    field = word == "true" || word == "1";
}

void set_field(std::string_view key, std::string_view text, int& field) {
    std::int64_t wide = 0;
    set_field(key, text, wide);
    if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
        throw_not_a("a whole number of at most 32 bits", key, text);
    }
    field = static_cast<int>(wide);
}

void set_field(std::string_view key, std::string_view text, std::int64_t& field) {
    const auto value = parse_int(trim(text));
    if (!value) throw_not_a("a whole number", key, text);
    field = *value;
}

void set_field(std::string_view key, std::string_view text, double& field) {
    const auto value = parse_double(trim(text));
    if (!value || !std::isfinite(*value)) throw_not_a("a number", key, text);
    field = *value;
}

void set_field(std::string_view, std::string_view text, std::string& field) {
    field = text;
}

void throw_unknown_key(std::string_view key, const std::vector<std::string>& known) {
    const auto likely = nearest(key, known);
    throw Error(ErrorCode::invalid_argument,
                likely ? fmt::format("there is no setting '{}'; did you mean '{}'?", key, *likely)
                       : fmt::format("there is no setting '{}'", key));
}

}  // namespace gruca::spec
