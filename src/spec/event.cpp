#include "spec/event.h"

#include <fmt/format.h>

#include <limits>

#include "base/boundary.h"

namespace gruca::spec {
namespace {

constexpr std::size_t kEventBytesMax = 1 << 16;

template <class Event>
std::string section() {
    std::string text =
        fmt::format("## {}\n\nWritten {}.\n\n| member | kind | meaning |\n|---|---|---|\n",
                    Event::kName, Event::kWhen);
    for (const FieldFacts& facts : field_facts(Event{})) {
        text += fmt::format("| `{}` | {} | {} |\n", facts.name, facts.kind, facts.help);
    }
    return text + "\n";
}

}  // namespace

std::optional<Json> event_of_line(std::string_view line) {
    line = trim(line);
    if (line.size() > kEventBytesMax || !line.starts_with('{') || !line.ends_with('}')) return {};
    std::optional<Json> found;
    const auto not_json = run_guarded([&] { found = Json::parse(line); });
    if (not_json || found->find("event") == nullptr || !found->at("event").is_string()) return {};
    return found;
}

std::optional<double> non_finite(const Json& json) {
    if (!json.is_string()) return {};
    const std::string& text = json.as_string();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    return {};
}

std::string metrics_page() {
    std::string page =
        "# Events and metrics of gruca/llm-trainer\n\n"
        "Generated from `src/spec/event.h` by `./dev docs`; a test compares "
        "them.\n\n"
        "The trainer writes one line of JSON an event to its standard output, beside lines meant "
        "for people. The member `event` names the kind. Only the first instance writes `step`, "
        "`eval`, `checkpoint` and `resume`. A number that is not finite is written as the string "
        "`NaN`, `Infinity` or `-Infinity`. Readers skip events and members they do not know.\n\n";
    page += section<StartEvent>() + section<ResumeEvent>() + section<StepEvent>() +
            section<EvalEvent>() + section<CheckpointEvent>() + section<EndEvent>() +
            section<ErrorEvent>();
    page.pop_back();
    return page;
}

}  // namespace gruca::spec
