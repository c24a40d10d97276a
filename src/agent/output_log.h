// agent/output_log.h
//
// The file that takes what a program prints, as its keeper sees it. The agent frees the beginning
// of the file (agent/log_space.h) when the service has it on disk; what is not freed is held. When
// more than kLogHeldBytesMax is held the keeper stops reading the program's pipe, and the program
// waits in its next write: nothing is lost and the disk does not fill. So a job goes on for a while
// without a service, and a program that prints faster than its log can be brought away is slowed.
//
// Where the file system cannot free a part of a file nothing is held back, and the log may grow.
// A full disk must not stop the program: what cannot be written is counted, and a line says so as
// soon as there is room again.
//
// Owned by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace gruca::agent {

constexpr std::uint64_t kLogHeldBytesMax = 512ull << 20;

class OutputLog {
  public:
    // `fd` is open for appending and outlives this.
    explicit OutputLog(int fd, std::uint64_t held_bytes_max = kLogHeldBytesMax);

    void append(std::span<const char> bytes);

    // Whether the program has to wait. Once it does, asked again now and then: nothing tells when
    // the agent has freed something.
    bool is_full();

    void finish();  // Makes the log durable.

  private:
    bool write_notes();
    std::size_t write(std::span<const char> bytes) const;
    bool holds_too_much() const;

    const int fd_;
    const std::uint64_t held_bytes_max_;
    const bool can_free_;
    std::uint64_t unseen_bytes_ = 0;  // Appended since the kernel was last asked.
    bool full_ = false;
    std::uint64_t lost_ = 0;  // Of which no note speaks yet.
    std::string note_ = {};   // What is still to be written of one that was begun.
};

}  // namespace gruca::agent
