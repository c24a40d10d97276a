// agent/stillness.h
//
// Whether what was killed hangs in the kernel or only takes its time. A process of hundreds of
// gigabytes, or with much memory of a GPU, needs more than seconds to end, and all the while it
// runs, or is woken now and then; one that waits for a file system that does not answer does
// nothing at all.
//
// Owned by one thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace gruca::agent {

// So long nothing has run: it hangs, and nobody can say for how long.
constexpr std::chrono::seconds kStillAfter{5};
constexpr std::chrono::milliseconds kLookEvery{250};

class Stillness {
  public:
    using Instant = std::chrono::steady_clock::time_point;

    // Of all processes in `proc` but process 1.
    explicit Stillness(Instant now, std::filesystem::path proc = "/proc");

    // Whether nothing has run for kStillAfter, or everything has taken longer than
    // spec::node_directory::kEndingWithin. Asked any number of times; looks every kLookEvery.
    bool has_come(Instant now);

  private:
    std::string traces() const;

    const std::filesystem::path proc_;
    const Instant begun_;
    Instant looked_, changed_;
    std::string seen_;
};

}  // namespace gruca::agent
