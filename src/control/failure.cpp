#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "control/lifecycle.h"

namespace gruca::control {
namespace {

constexpr std::size_t kFailureTextBytesMax = 4096;  // Kept of what an agent says.

std::string cut(std::string_view text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) return std::string(text);
    std::size_t end = bytes_max;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return std::string(text.substr(0, end));
}

bool ended_badly(const spec::NodeReport& report) {
    return report.ended && (report.exit_code != 0 || report.exit_signal != 0);
}

std::string kind_of(const spec::NodeReport& report) {
    for (const char* kind : {"AlgorithmError", "ClientError", "InternalServerError"}) {
        if (report.failure_kind == kind) return kind;
    }
    return ended_badly(report) ? "AlgorithmError" : "InternalServerError";
}

std::string text_of(const spec::NodeReport& report) {
    if (!report.failure.empty()) return report.failure;
    if (report.exit_signal != 0) {
        return fmt::format("the program was ended by signal {}", report.exit_signal);
    }
    return ended_badly(report) ? "the program failed without saying why"
                               : "the node gave up without saying why";
}

// What a node says of the time, unless it says nothing or tells of the future.
TimePoint time_told(TimePoint told, TimePoint now) {
    return told > TimePoint() && told <= now ? told : now;
}

const Node* first_to_fail(const Job& job) {
    const Node* first = nullptr;
    for (const Node& node : job.nodes) {
        if (!node.failed_at) continue;
        if (first == nullptr || *node.failed_at < *first->failed_at) first = &node;
    }
    return first;
}

std::string losses(const Job& job) {
    std::string text;
    for (const Node& node : job.nodes) {
        if (!node.lost) continue;
        text += fmt::format("{}node {} was lost: {}", text.empty() ? "" : "; ", node.host,
                            node.lost_why);
    }
    return text;
}

}  // namespace

bool merge(Node& node, const spec::NodeReport& heard, TimePoint now) {
    spec::NodeReport& known = node.report;
    bool news = false;
    if (heard.phase > known.phase) {
        known.phase = heard.phase;
        news = true;
    }
    if (heard.ended && !known.ended) {
        known.ended = true;
        known.exit_code = heard.exit_code;
        known.exit_signal = heard.exit_signal;
        known.ended_at = time_told(heard.ended_at, now);
        news = true;
    }
    // The first reason stays; what an agent appends to it is taken.
    std::string failure = cut(repair_utf8(heard.failure), kFailureTextBytesMax);
    if (failure.size() > known.failure.size() && failure.starts_with(known.failure)) {
        if (known.failure.empty()) known.failure_kind = heard.failure_kind;
        known.failure = std::move(failure);
        news = true;
    }
    if (heard.given_up && !known.given_up) {
        known.given_up = true;
        known.gave_up_at = time_told(heard.gave_up_at, now);
        news = true;
    }
    if (!node.failed_at && (ended_badly(known) || known.given_up)) {
        const TimePoint when = ended_badly(known) ? known.ended_at : known.gave_up_at;
        // One that fails after it was told to stop was dragged down by others.
        const bool by_itself = !node.stop_ordered_at || when < *node.stop_ordered_at;
        if (by_itself) node.failed_at = when;
    }
    return news;
}

std::string failure_reason(const Job& job, const std::string& also) {
    const Node* failed = first_to_fail(job);
    const std::string lost = losses(job);
    if (failed == nullptr || job.cause == EndCause::node_lost) {
        const std::string failure =
            failed ? fmt::format("; {}: {}", failed->host, text_of(failed->report)) : "";
        return cut("InternalServerError: " + lost + failure + also, kFailureReasonBytesMax);
    }
    const spec::NodeReport& report = failed->report;
    std::string after;
    if (ended_badly(report)) after += fmt::format(", exit code: {}", report.exit_code);
    if (job.nodes.size() > 1) after += fmt::format(", on {}", failed->host);
    if (!lost.empty()) after += "; " + cut(lost, kFailureReasonBytesMax / 4);
    after += cut(also, kFailureReasonBytesMax / 4);
    const std::string before = kind_of(report) + ": ";
    return before + cut(text_of(report), kFailureReasonBytesMax - before.size() - after.size()) +
           after;
}

}  // namespace gruca::control
