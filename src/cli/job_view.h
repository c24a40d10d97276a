// cli/job_view.h
//
// A job on a terminal: changes of its status, its lines, one line of progress that is redrawn in
// place (or, where nothing can be redrawn, printed every ten seconds), and how it ended.
//
// Owned by one thread.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "cli/context.h"
#include "cli/job_logs.h"
#include "cli/progress.h"

namespace gruca::cli {

struct JobViewOptions {
    bool shows_statuses = true;
    bool raw = false;   // Event lines too.
    bool json = false;  // Nothing but log events, one JSON object a line.
};

class JobView {
  public:
    JobView(Context& context, JobViewOptions options) : context_(context), options_(options) {}
    ~JobView() { erase_progress(); }
    JobView(const JobView&) = delete;
    JobView& operator=(const JobView&) = delete;

    void take_description(const Json& description);  // An answer of DescribeTrainingJob.
    void show(const LogLine& line);
    void settle();  // After the lines of a round: statuses not yet shown, and progress.

  private:
    struct Status {
        std::int64_t time_ms;
        std::string text;
    };

    void print(const std::string& line);
    void print_statuses_until(std::int64_t time_ms);
    void erase_progress();

    Context& context_;
    const JobViewOptions options_;
    std::deque<Status> statuses_;  // Not yet shown.
    std::size_t statuses_seen_ = 0;
    bool several_hosts_ = false;
    TrainingProgress progress_;
    std::size_t progress_columns_ = 0;  // Of the line that stands on the terminal now.
    std::optional<std::chrono::steady_clock::time_point> progress_printed_;
};

// How a job ended, or how it stands, in a few lines.
std::string outcome_text(const Json& description);

std::string instance_text(const Json& description);                     // "2 x ml.m5.large"
TimePoint time_member(const Json& description, std::string_view name);  // Epoch seconds.
bool is_over(const Json& description);
int exit_code_of_job(const Json& description);  // 0 when Completed or Stopped.

}  // namespace gruca::cli
