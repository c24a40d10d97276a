// cli/doctor.h
//
// What of this machine gruca can use, and what follows from each thing that it cannot: facts are
// gathered thinly and judged by a pure function, so that a test can be any machine.
//
// Pure values and functions, except look_at_machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace gruca::cli {

struct SpaceFacts {
    std::string path;  // Asked about.
    std::uint64_t free_bytes = 0;
    std::uint64_t free_files = 0;  // Inodes.
    std::uint64_t files = 0;       // 0: the file system has no limit of its own.
    bool keeps_attributes = false;
};

struct MachineFacts {
    bool is_root = false;
    std::string kernel = {};                         // "6.1.0-18-amd64"
    std::vector<std::string> missing_programs = {};  // Of those of this release.
    Json probe = Json::object();                     // What `gruca-agent --probe` says,
                                                     // and `gruca-service --probe`.
    std::string fuse_obstacle = {};                  // Empty: /dev/fuse can be opened.
    bool has_fusermount = false;
    std::uint64_t memory_bytes = 0;
    std::uint64_t memory_available_bytes = 0;
    std::uint64_t swap_used_bytes = 0;
    SpaceFacts data_dir = {};
    std::uint64_t open_files_max = 0;
    int cores = 0;
    std::string processor = {};
    std::vector<std::string> processor_features = {};  // As /proc/cpuinfo calls them.
    int gpus = 0;                                      // NVIDIA device nodes.
    bool clock_is_synchronised = false;
};

enum class Verdict { ok, limited, no };

struct Finding {
    Verdict verdict = Verdict::ok;
    std::string subject;           // "sandbox"
    std::string found = {};        // "a program starts in namespaces of its own"
    std::string consequence = {};  // What does not work; empty when the verdict is ok.
    std::string remedy = {};       // What to do; may be empty.
};

constexpr std::uint64_t kMemoryWanted = 2ull << 30;
constexpr std::uint64_t kDiskWanted = 10ull << 30;
constexpr std::uint64_t kDiskNeeded = 1ull << 30;
constexpr std::uint64_t kFilesWanted = 100'000;
constexpr std::uint64_t kOpenFilesWanted = 16'384;  // 12,000 connections, and files.

std::vector<Finding> examine(const MachineFacts& facts);

std::string findings_text(const std::vector<Finding>& findings);
Json findings_json(const std::vector<Finding>& findings);
// Jobs cannot run here.
bool is_unusable(const std::vector<Finding>& findings);

// How long one of gruca's programs may take to say what it can do here.
constexpr std::chrono::seconds kProbePatience{30};

// `program_dir` is where gruca's programs lie.
MachineFacts look_at_machine(const std::filesystem::path& program_dir,
                             const std::filesystem::path& data_dir,
                             std::chrono::milliseconds patience = kProbePatience);

}  // namespace gruca::cli
