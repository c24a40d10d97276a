// spec/fields.h
//
// A setting is declared once. A struct of settings has
//
//     template <class Visitor>
//     void fields(Visitor& visit) {
//         visit("learning_rate", learning_rate, "Peak learning rate, reached after the warm-up.");
//     }
//
// and this file makes of it: a JSON writer, a strict JSON reader, a reader of string maps (hyper-
// parameters arrive as strings), command-line help and the table of the reference page. Unknown
// keys are errors that name the nearest known one. Kinds: bool, int, int64, double, string.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace gruca::spec {

struct FieldFacts {
    std::string name;
    std::string kind;        // "bool", "int", "number", "string"
    std::string by_default;  // As text.
    std::string help;
};

// Sets `field` from text as a person or a hyperparameter writes it. Throws invalid_argument naming
// the key, the text and the kind wanted.
void set_field(std::string_view key, std::string_view text, bool& field);
void set_field(std::string_view key, std::string_view text, int& field);
void set_field(std::string_view key, std::string_view text, std::int64_t& field);
void set_field(std::string_view key, std::string_view text, double& field);
void set_field(std::string_view key, std::string_view text, std::string& field);

[[noreturn]] void throw_unknown_key(std::string_view key, const std::vector<std::string>& known);

template <class Settings>
std::vector<FieldFacts> field_facts(Settings settings) {
    std::vector<FieldFacts> facts;
    auto visit = [&facts](std::string_view name, auto& value, std::string_view help) {
        using Value = std::remove_reference_t<decltype(value)>;
        FieldFacts one{
            .name = std::string(name), .kind = "", .by_default = "", .help = std::string(help)};
        if constexpr (std::is_same_v<Value, bool>) {
            one.kind = "bool";
        } else if constexpr (std::is_integral_v<Value>) {
            one.kind = "int";
        } else if constexpr (std::is_floating_point_v<Value>) {
            one.kind = "number";
        } else {
            one.kind = "string";
        }
        const Json text(value);
        one.by_default = text.is_string() ? text.as_string() : text.dump();
        facts.push_back(std::move(one));
    };
    settings.fields(visit);
    return facts;
}

template <class Settings>
std::vector<std::string> field_names(const Settings& settings) {
    std::vector<std::string> names;
    for (const FieldFacts& facts : field_facts(settings)) names.push_back(facts.name);
    return names;
}

template <class Settings>
Json write_fields(Settings settings) {
    Json json = Json::object();
    auto visit = [&json](std::string_view name, auto& value, std::string_view) {
        json.set(name, Json(value));
    };
    settings.fields(visit);
    return json;
}

// Sets the one field `key` from text. Throws invalid_argument for an unknown key.
template <class Settings>
void read_field(Settings& settings, std::string_view key, std::string_view text) {
    bool found = false;
    auto visit = [&](std::string_view name, auto& value, std::string_view) {
        if (name != key) return;
        set_field(key, text, value);
        found = true;
    };
    settings.fields(visit);
    if (!found) throw_unknown_key(key, field_names(settings));
}

// Sets every field named in the object; values are JSON of the right kind, or strings holding it.
template <class Settings>
void read_fields(Settings& settings, const Json& json) {
    for (const auto& [key, value] : json.as_object()) {
        read_field(settings, key, value.is_string() ? value.as_string() : value.dump());
    }
}

}  // namespace gruca::spec
