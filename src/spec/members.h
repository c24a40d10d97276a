// spec/members.h
//
// Every member of CreateTrainingJob in one table: its kind, its limits, and what gruca does with
// it. The checker, the texts of its errors, what Describe echoes and the reference page are read
// from here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/pattern.h"

namespace gruca::spec {

enum class MemberKind { structure, list, map, text, integer, boolean };
enum class Support { works, harmless, refused };

// A row of the table. Paths: "A.B" a member, "A[]" the items of a list, "A{key}" and "A{}" the keys
// and values of a map.
struct MemberRow {
    std::string_view path;
    MemberKind kind;
    std::int64_t min;  // Of a text its length, of a list or map its size, of an integer its value.
    std::int64_t max;
    std::string_view pattern = {};
    std::string_view values = {};  // "File|Pipe": the only texts allowed; empty: any.
    bool required = false;
    Support support = Support::works;
    bool has_accepted = false;       // refused: whether one value asks for nothing and is accepted,
    std::string_view accepted = {};  // this one: "File", "false", "0"; "": an empty text or list.
    std::string_view why = {};       // refused, harmless: the reason, for people.
    std::string_view by_default = {};  // What Describe shows when it was not given.

    constexpr MemberRow must() const;
    constexpr MemberRow harmless(std::string_view reason) const;
    constexpr MemberRow refused(std::string_view reason) const;
    constexpr MemberRow refused_unless(std::string_view value, std::string_view reason) const;
    constexpr MemberRow otherwise(std::string_view value) const;
};

constexpr MemberRow MemberRow::must() const {
    MemberRow row = *this;
    row.required = true;
    return row;
}
constexpr MemberRow MemberRow::harmless(std::string_view reason) const {
    MemberRow row = *this;
    row.support = Support::harmless;
    row.why = reason;
    return row;
}
constexpr MemberRow MemberRow::refused(std::string_view reason) const {
    MemberRow row = *this;
    row.support = Support::refused;
    row.why = reason;
    return row;
}
constexpr MemberRow MemberRow::refused_unless(std::string_view value,
                                              std::string_view reason) const {
    MemberRow row = refused(reason);
    row.has_accepted = true;
    row.accepted = value;
    return row;
}
constexpr MemberRow MemberRow::otherwise(std::string_view value) const {
    MemberRow row = *this;
    row.by_default = value;
    return row;
}

// The table as a tree. Immutable; lives as long as the program.
struct Member {
    const MemberRow* row = nullptr;  // Of the root: nullptr, and it is a structure.
    std::string name;  // Last part of the path: "S3Uri"; of items "[]", "{key}", "{}".
    std::vector<std::string> values;
    std::unique_ptr<Pattern> pattern;
    std::vector<std::unique_ptr<Member>> members;

    MemberKind kind() const { return row ? row->kind : MemberKind::structure; }
    const Member* find(std::string_view member) const;
};

std::span<const MemberRow> create_training_job_rows();
const Member& create_training_job_members();

// The reference page of the table: docs/reference/create-training-job.md.
std::string create_training_job_page();

}  // namespace gruca::spec
