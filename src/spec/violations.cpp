#include "spec/violations.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace gruca::spec {
namespace {

constexpr std::size_t kListedMax = 100;
constexpr std::size_t kShownBytesMax = 1024;  // Of one value in a message.
constexpr std::size_t kTypoBytesMax = 64;     // Longer names are no slip of the pen.

// As the API prints values: [a, b] and {k=v}.
void show(const Json& value, std::string& out) {
    if (out.size() > kShownBytesMax) return;
    const char* separator = "";
    if (value.is_array()) {
        out += '[';
        for (const Json& item : value.as_array()) {
            if (out.size() > kShownBytesMax) break;
            out += separator;
            show(item, out);
            separator = ", ";
        }
        out += ']';
    } else if (value.is_object()) {
        out += '{';
        for (const auto& [key, item] : value.as_object()) {
            if (out.size() > kShownBytesMax) break;
            out += separator + key + "=";
            show(item, out);
            separator = ", ";
        }
        out += '}';
    } else {
        out += value.is_string() ? value.as_string() : value.dump();
    }
}

std::string cut(std::string text) {
    if (text.size() <= kShownBytesMax) return text;
    std::size_t end = kShownBytesMax;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return text.substr(0, end) + "…";
}

std::string shown(const Json& value) {
    if (value.is_null()) return "null";
    std::string text;
    show(value, text);
    return fmt::format("'{}'", cut(std::move(text)));
}

std::string join(const std::vector<std::string>& texts, std::string_view separator) {
    return fmt::format("{}", fmt::join(texts, separator));
}

bool is_of_kind(MemberKind kind, const Json& value) {
    switch (kind) {
        case MemberKind::structure:
        case MemberKind::map:
            return value.is_object();
        case MemberKind::list:
            return value.is_array();
        case MemberKind::text:
            return value.is_string();
        case MemberKind::integer:
            return value.is_int();
        case MemberKind::boolean:
            return value.is_bool();
    }
    return false;
}

const char* name_of(MemberKind kind) {
    switch (kind) {
        case MemberKind::structure:
            return "a structure";
        case MemberKind::map:
            return "a map";
        case MemberKind::list:
            return "a list";
        case MemberKind::text:
            return "a string";
        case MemberKind::integer:
            return "an integer";
        case MemberKind::boolean:
            return "a boolean";
    }
    return "";
}

// The constraints that `text` breaks.
std::vector<std::string> broken_by_text(const Member& member, const std::string& text) {
    const MemberRow& row = *member.row;
    std::vector<std::string> broken;
    const auto length = static_cast<std::int64_t>(utf16_length(text));
    if (length > row.max) {
        broken.push_back(fmt::format("Member must have length less than or equal to {}", row.max));
    }
    if (length < row.min) {
        broken.push_back(
            fmt::format("Member must have length greater than or equal to {}", row.min));
    }
    // Text over its length is not matched: that bounds the work.
    if (member.pattern && length <= row.max && !member.pattern->matches(text)) {
        broken.push_back(fmt::format("Member must satisfy regular expression pattern: {}",
                                     member.pattern->expression()));
    }
    const auto& values = member.values;
    if (!values.empty() && std::find(values.begin(), values.end(), text) == values.end()) {
        broken.push_back(
            fmt::format("Member must satisfy enum value set: [{}]", join(values, ", ")));
    }
    return broken;
}

void check_size(const Member& member, const Json& value, const std::string& path,
                Violations& violations) {
    const MemberRow& row = *member.row;
    const bool is_integer = row.kind == MemberKind::integer;
    const std::int64_t size =
        is_integer ? value.as_int()
                   : static_cast<std::int64_t>(value.is_array() ? value.as_array().size()
                                                                : value.as_object().size());
    const char* measure = is_integer ? "value" : "length";
    if (size > row.max) {
        violations.add(
            value, path,
            fmt::format("Member must have {} less than or equal to {}", measure, row.max));
    }
    if (size < row.min) {
        violations.add(
            value, path,
            fmt::format("Member must have {} greater than or equal to {}", measure, row.min));
    }
}

void check_map(const Member& map, const Json& value, const std::string& path,
               Violations& violations) {
    check_size(map, value, path, violations);
    const Member* keys = map.find("{key}");
    const Member* values = map.find("{}");
    for (const auto& [key, item] : value.as_object()) {
        const Json entry = Json::object({{key, item}});
        const auto broken_keys = broken_by_text(*keys, key);
        if (!broken_keys.empty()) {
            violations.add(
                entry, path,
                fmt::format("Map keys must satisfy constraint: [{}]", join(broken_keys, ", ")));
        }
        const auto broken_values = item.is_string()
                                       ? broken_by_text(*values, item.as_string())
                                       : std::vector<std::string>{"Member must be a string"};
        if (!broken_values.empty()) {
            violations.add(
                entry, path,
                fmt::format("Map value must satisfy constraint: [{}]", join(broken_values, ", ")));
        }
    }
}

// Whether a value of a refused member asks for nothing.
bool asks_for_nothing(const MemberRow& row, const Json& value) {
    if (!row.has_accepted) return false;
    if (row.kind == MemberKind::text) return value.as_string() == row.accepted;
    if (row.kind == MemberKind::list) return value.as_array().empty();
    return value.dump() == row.accepted;
}

void check_unknown(const Member& structure, const Json& value, const std::string& prefix,
                   Violations& violations) {
    std::vector<std::string> known;
    for (const auto& member : structure.members) known.push_back(member->name);
    for (const auto& [name, item] : value.as_object()) {
        if (item.is_null() || structure.find(name)) continue;
        const bool may_be_typo = name.size() <= kTypoBytesMax;
        const auto likely = may_be_typo ? nearest(name, known) : std::nullopt;
        violations.add(item, prefix + lower_camel(cut(name)),
                       fmt::format("{} is not a member that gruca knows{}", cut(name),
                                   likely ? "; did you mean " + *likely + "?" : ""));
    }
}

}  // namespace

void Violations::add(const Json& value, std::string_view path, std::string_view constraint) {
    ++count_;
    if (listed_.size() == kListedMax) return;
    listed_.push_back(fmt::format("Value {} at '{}' failed to satisfy constraint: {}", shown(value),
                                  path, constraint));
}

void Violations::throw_if_any() const {
    if (empty()) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} validation error{} detected: {}{}", count_, count_ == 1 ? "" : "s",
                            join(listed_, "; "), count_ > listed_.size() ? "; …" : ""));
}

std::string lower_camel(std::string_view name) {
    std::string camel(name);
    if (!camel.empty()) camel[0] = to_lower(camel.substr(0, 1))[0];
    return camel;
}

void check_members(const Member& structure, const Json& value, const std::string& path,
                   Violations& violations) {
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const auto& member : structure.members) {
        const Json* given = value.find(member->name);
        const std::string at = prefix + lower_camel(member->name);
        if (given) {
            check_member(*member, *given, at, violations);
        } else if (member->row->required) {
            violations.add(Json(), at, "Member must not be null");
        }
    }
    // What lies inside a refused structure is not in the table.
    if (!structure.members.empty()) check_unknown(structure, value, prefix, violations);
}

void check_member(const Member& member, const Json& value, const std::string& path,
                  Violations& violations) {
    const MemberRow& row = *member.row;
    if (value.is_null()) {
        violations.add(value, path, "Member must not be null");
        return;
    }
    if (!is_of_kind(row.kind, value)) {
        violations.add(value, path, fmt::format("Member must be {}", name_of(row.kind)));
        return;
    }
    if (row.support == Support::refused && !asks_for_nothing(row, value)) {
        const bool in_enum =
            row.values.empty() || broken_by_text(member, value.as_string()).empty();
        if (in_enum) {
            violations.add(value, path,
                           fmt::format("{} {}is not supported by gruca: {}", member.name,
                                       row.values.empty() ? "" : value.as_string() + " ", row.why));
        }
        if (row.kind == MemberKind::structure) return;
    }
    switch (row.kind) {
        case MemberKind::structure:
            check_members(member, value, path, violations);
            break;
        case MemberKind::map:
            check_map(member, value, path, violations);
            break;
        case MemberKind::list:
            check_size(member, value, path, violations);
            for (std::size_t i = 0; i < value.as_array().size(); ++i) {
                const Member* items = member.find("[]");
                if (items == nullptr) break;  // A refused list is not described further.
                check_member(*items, value.as_array()[i], fmt::format("{}.{}.member", path, i + 1),
                             violations);
            }
            break;
        case MemberKind::text:
            for (const std::string& broken : broken_by_text(member, value.as_string())) {
                violations.add(value, path, broken);
            }
            break;
        case MemberKind::integer:
            check_size(member, value, path, violations);
            break;
        case MemberKind::boolean:
            break;
    }
}

}  // namespace gruca::spec
