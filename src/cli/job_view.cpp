#include "cli/job_view.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <ostream>

#include "base/text.h"
#include "cli/command.h"

namespace gruca::cli {
namespace {

constexpr auto kProgressLineEvery = std::chrono::seconds(10);

std::string clock_text(TimePoint time) {
    return iso8601(time).substr(11, 8);
}

}  // namespace

void JobView::take_description(const Json& description) {
    if (const Json* resources = description.find("ResourceConfig")) {
        several_hosts_ = resources->get_int("InstanceCount", 1) > 1;
    }
    const Json* transitions = description.find("SecondaryStatusTransitions");
    if (!options_.shows_statuses || options_.json || transitions == nullptr) return;
    const Json::Array& all = transitions->as_array();
    for (; statuses_seen_ < all.size(); ++statuses_seen_) {
        const Json& one = all[statuses_seen_];
        const TimePoint time = time_member(one, "StartTime");
        statuses_.push_back(
            {.time_ms = to_ms(time),
             .text = fmt::format("{}  {:<12} {}", clock_text(time), one.get_string("Status"),
                                 one.get_string("StatusMessage"))});
    }
}

void JobView::show(const LogLine& line) {
    if (options_.json) {
        context_.out << line.event.dump() << "\n";
        return;
    }
    print_statuses_until(line.timestamp_ms);
    const bool is_event = progress_.take(line.message);
    if (is_event && !options_.raw) return;
    print((several_hosts_ ? line.host + " | " : "") + line.message);
}

void JobView::settle() {
    print_statuses_until(std::numeric_limits<std::int64_t>::max());
    const auto line = progress_.line();
    if (!line || options_.json || !options_.shows_statuses || !progress_.has_news()) {
        context_.out.flush();
        return;
    }
    const auto now = context_.clock.steady_now();
    const bool due = !progress_printed_ || now - *progress_printed_ >= kProgressLineEvery;
    if (context_.out_is_terminal) {
        erase_progress();
        context_.out << *line;
        progress_columns_ = line->size();
        progress_.clear_news();
    } else if (due) {
        context_.out << *line << "\n";
        progress_printed_ = now;
        progress_.clear_news();
    }
    context_.out.flush();
}

void JobView::print(const std::string& line) {
    erase_progress();
    context_.out << line << "\n";
}

void JobView::print_statuses_until(std::int64_t time_ms) {
    while (!statuses_.empty() && statuses_.front().time_ms <= time_ms) {
        print(statuses_.front().text);
        statuses_.pop_front();
    }
}

void JobView::erase_progress() {
    if (progress_columns_ == 0) return;
    context_.out << "\r" << std::string(progress_columns_, ' ') << "\r";
    progress_columns_ = 0;
}

TimePoint time_member(const Json& description, std::string_view name) {
    return time_from_ms(std::llround(description.get_double(name) * 1000));
}

bool is_over(const Json& description) {
    const std::string status = description.get_string("TrainingJobStatus");
    return status == "Completed" || status == "Failed" || status == "Stopped";
}

int exit_code_of_job(const Json& description) {
    return description.get_string("TrainingJobStatus") == "Failed" ? kExitJobFailed : 0;
}

std::string instance_text(const Json& description) {
    const Json* resources = description.find("ResourceConfig");
    if (resources == nullptr) return "";
    return fmt::format("{} x {}", resources->get_int("InstanceCount", 1),
                       resources->get_string("InstanceType"));
}

std::string outcome_text(const Json& description) {
    std::string text = description.get_string("TrainingJobName") + " is " +
                       description.get_string("TrainingJobStatus");
    const std::string secondary = description.get_string("SecondaryStatus");
    if (!secondary.empty() && secondary != description.get_string("TrainingJobStatus")) {
        text += " (" + secondary + ")";
    }
    if (description.find("BillableTimeInSeconds") != nullptr) {
        text += fmt::format("; billable seconds: {}", description.get_int("BillableTimeInSeconds"));
    }
    text += "\n";
    const std::string reason = description.get_string("FailureReason");
    if (!reason.empty()) text += "Reason: " + reason + "\n";
    const Json* artifacts = description.find("ModelArtifacts");
    const std::string model = artifacts ? artifacts->get_string("S3ModelArtifacts") : "";
    // The API names the place for a failed job too, where nothing lies.
    if (model.empty() || !is_over(description) || exit_code_of_job(description) != 0) return text;
    text += "Model: " + model + "\n";
    const bool is_file = model.ends_with(".tar.gz");
    return text + "  fetch it: gruca store cp " + (is_file ? "" : "-r ") + model + " .\n";
}

}  // namespace gruca::cli
