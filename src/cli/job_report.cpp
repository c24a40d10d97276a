#include "cli/job_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/text.h"
#include "cli/job_view.h"

namespace gruca::cli {
namespace {

constexpr std::size_t kBarColumns = 24;

// A stage of the timeline: transitions that mean the same to a person are one.
struct Stage {
    std::string name;
    TimePoint begin = {};
    double seconds = 0;
    bool ongoing = false;
};

// Nothing for the status of a job that is over. "Pending" is two things: waiting for slots, and
// preparing the instances.
std::optional<std::string> stage_name(const Json& row) {
    const std::string status = row.get_string("Status");
    const bool waits = row.get_string("StatusMessage").find("waiting") != std::string::npos;
    if (status == "Starting" || (status == "Pending" && waits)) return "queued";
    if (status == "Pending") return "starting";
    for (const char* name : {"Downloading", "Training", "Uploading", "Stopping"}) {
        if (status == name) return to_lower(status);
    }
    return std::nullopt;
}

std::string time_of_day(TimePoint time) {
    return iso8601(time).substr(11, 8);
}

std::string duration_text(double seconds) {
    return seconds < 60 ? fmt::format("{:.1f} s", seconds) : human_seconds(seconds);
}

std::vector<Stage> stages_of(const Json::Array& rows, TimePoint now) {
    std::vector<Stage> stages;
    for (const Json& row : rows) {
        const auto name = stage_name(row);
        if (!name) continue;
        const TimePoint begin = time_member(row, "StartTime");
        const bool ongoing = row.find("EndTime") == nullptr;
        const TimePoint end = ongoing ? now : time_member(row, "EndTime");
        if (stages.empty() || stages.back().name != *name) {
            stages.push_back({.name = *name, .begin = begin});
        }
        stages.back().seconds += std::max(0.0, std::chrono::duration<double>(end - begin).count());
        stages.back().ongoing = ongoing;
    }
    return stages;
}

std::string bar_of(double seconds, double all) {
    const double share = all > 0 ? seconds / all : 0;
    return std::string(static_cast<std::size_t>(std::lround(share * kBarColumns)), '#');
}

// "training" or "ended with exit code 1: …"
std::string state_of(const Json& node) {
    const std::string why = node.get_string("LostWhy");
    if (node.get_bool("Lost")) return "lost: " + why;
    std::string text = node.get_string("Phase");
    if (node.get_bool("Ended")) {
        const auto signal = node.get_int("ExitSignal");
        text += signal != 0 ? fmt::format(", ended by signal {}", signal)
                            : fmt::format(", exit code {}", node.get_int("ExitCode"));
    }
    const std::string failure = node.get_string("Failure");
    if (!failure.empty()) text += ": " + failure.substr(0, failure.find('\n'));
    return text;
}

}  // namespace

std::string timeline_text(const Json& description, TimePoint now) {
    const Json* rows = description.find("SecondaryStatusTransitions");
    if (rows == nullptr || rows->as_array().empty()) return "";
    const std::vector<Stage> stages = stages_of(rows->as_array(), now);
    double all = 0;
    for (const Stage& stage : stages) all += stage.seconds;
    std::string text = "Timeline:\n";
    for (const Stage& stage : stages) {
        std::string line =
            fmt::format("  {}  {:<12}{:>12}  {}", time_of_day(stage.begin), stage.name,
                        duration_text(stage.seconds), bar_of(stage.seconds, all));
        if (stage.ongoing) line += line.ends_with(' ') ? "so far" : " so far";
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    const Json& last = rows->as_array().back();
    if (stage_name(last)) return text;
    return text + fmt::format("  {}  {}: {}\n", time_of_day(time_member(last, "StartTime")),
                              last.get_string("Status"), last.get_string("StatusMessage"));
}

std::string nodes_text(const Json& nodes) {
    const Json::Array& all = nodes.at("Nodes").as_array();
    if (all.empty()) return "";
    std::string text = "Nodes:\n";
    for (const Json& node : all) {
        text += fmt::format("  {:<8}  {:<15}  {}\n", node.get_string("Host"),
                            node.get_string("Address"), state_of(node));
    }
    return text;
}

std::string hint_text(const std::string& failure_reason, const std::string& job) {
    for (const FailureHint& hint : failure_hints()) {
        if (failure_reason.find(hint.pattern) == std::string::npos) continue;
        return "Hint: " + hint.remedy + "\n  more: docs/guide/when-a-job-fails.md, \"" +
               hint.section + "\"\n";
    }
    return "Hint: read its last lines: gruca job logs " + job +
           "\n  more: docs/guide/when-a-job-fails.md\n";
}

}  // namespace gruca::cli
