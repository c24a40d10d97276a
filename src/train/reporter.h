// train/reporter.h
//
// What a trainer says on its standard output: events as lines of JSON (spec/event.h) and, beside
// them, lines for people. Every line is complete and flushed when a call returns. Owned by one
// thread.
#pragma once

#include <ostream>
#include <string>

#include "spec/event.h"

namespace gruca::train {

class Reporter {
  public:
    // `is_first`: this rank speaks for all; others report only their own start, end and errors.
    Reporter(std::ostream& out, bool is_first) : out_(out), is_first_(is_first) {}

    void report(const spec::StartEvent& event);
    void report(const spec::ResumeEvent& event);
    void report(const spec::StepEvent& event);
    void report(const spec::EvalEvent& event);
    void report(const spec::CheckpointEvent& event);
    void report(const spec::EndEvent& event);
    void report(const spec::ErrorEvent& event);

  private:
    template <class Event>
    void write(const Event& event, const std::string& for_people);

    std::ostream& out_;
    const bool is_first_;
};

}  // namespace gruca::train
