#include <fmt/format.h>

#include "base/text.h"
#include "spec/members.h"

namespace gruca::spec {
namespace {

// A backquoted text in a cell of a Markdown table.
std::string code(std::string_view text) {
    std::string escaped;
    for (const char c : text) escaped += c == '|' ? "\\|" : std::string(1, c);
    return "`" + escaped + "`";
}

std::string range(std::string_view what, const MemberRow& row) {
    if (row.min == row.max) return fmt::format("{} {}", what, row.min);
    return fmt::format("{} {} to {}", what, row.min, row.max);
}

std::string limits(const MemberRow& row) {
    std::string text;
    switch (row.kind) {
        case MemberKind::structure:
            text = "structure";
            break;
        case MemberKind::boolean:
            text = "boolean";
            break;
        case MemberKind::integer:
            text = row.max == INT64_MAX ? "integer" : range("integer,", row);
            break;
        case MemberKind::list:
            text = range("list of", row);
            break;
        case MemberKind::map:
            text = range("map of", row);
            break;
        case MemberKind::text:
            if (row.values.find('|') != std::string_view::npos) {
                for (const std::string& value : split(row.values, '|')) {
                    text += (text.empty() ? "" : ", ") + code(value);
                }
            } else if (!row.values.empty()) {
                text = fmt::format("one of the {}", row.values);
            } else {
                text = range("text of", row);
                if (!row.pattern.empty()) text += ", " + code(row.pattern);
            }
    }
    return row.required ? text + "; required" : text;
}

std::string support(const MemberRow& row) {
    if (row.support == Support::harmless) return fmt::format("no effect: {}", row.why);
    if (row.support == Support::refused) {
        const std::string unless = !row.has_accepted      ? ""
                                   : row.accepted.empty() ? " unless empty"
                                                          : " unless " + code(row.accepted);
        return fmt::format("refused{}: {}", unless, row.why);
    }
    return row.by_default.empty() ? "works" : "works; default " + code(row.by_default);
}

}  // namespace

std::string create_training_job_page() {
    std::string page =
        "# CreateTrainingJob, member by member\n\n"
        "Written from the table in `src/spec/members.cpp`; do not edit by hand.\n\n"
        "Every member is checked against the limits of the API. A member whose behaviour gruca\n"
        "does not have is refused by name; one without effect is accepted and shown by\n"
        "DescribeTrainingJob. `[]` stands for the items of a list, `{key}` and `{}` for the keys\n"
        "and values of a map. What lies inside a refused structure is not described further.\n\n"
        "| member | limits | in gruca |\n"
        "|---|---|---|\n";
    std::string_view refused = "-";  // The last refused row; what lies below it says nothing more.
    for (const MemberRow& row : create_training_job_rows()) {
        if (row.path.starts_with(refused)) continue;
        if (row.support == Support::refused) refused = row.path;
        page += fmt::format("| {} | {} | {} |\n", code(row.path), limits(row), support(row));
    }
    page +=
        "\nBeyond the table:\n\n"
        "* `TrainingImage` is `gruca/llm-trainer`, which takes arguments but no entrypoint, or\n"
        "  `gruca/host`, which needs a `ContainerEntrypoint`: any program of the machine.\n"
        "* URIs start with `s3://` and name a bucket.\n"
        "* Channel names are unique within a job, tag keys within a request; tag keys beginning\n"
        "  with `aws:` are reserved.\n"
        "* `CheckpointConfig.LocalPath` is absolute, without `..`, not directly below `/`, and\n"
        "  lies outside `/opt/ml/input`, `/opt/ml/model` and `/opt/ml/output`.\n"
        "* `ProfilingIntervalInMilliseconds` is 100, 200, 500, 1000, 5000 or 60000.\n"
        "* Unknown members are refused, with the nearest known name.\n";
    return page;
}

}  // namespace gruca::spec
