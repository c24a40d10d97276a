#include "agent/stillness.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/text.h"
#include "spec/node_directory.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSelf = "1";  // Who asks runs.

// The entries of a directory that are numbers, in order.
std::vector<std::string> numbers_in(const fs::path& directory) {
    std::vector<std::string> numbers;
    std::error_code failure;
    for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end;
         entry.increment(failure)) {
        const std::string name = entry->path().filename().string();
        if (parse_int(name)) numbers.push_back(name);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

}  // namespace

Stillness::Stillness(Instant now, fs::path proc)
    : proc_(std::move(proc)), begun_(now), looked_(now), changed_(now), seen_(traces()) {}

// Each thread with the time it has run, and how often it was woken.
std::string Stillness::traces() const {
    std::string all;
    for (const std::string& process : numbers_in(proc_)) {
        if (process == kSelf) continue;
        for (const std::string& thread : numbers_in(proc_ / process / "task")) {
            std::ifstream file(proc_ / process / "task" / thread / "schedstat");
            all += thread + ": ";
            all.append(std::istreambuf_iterator<char>(file), {});
        }
    }
    return all;
}

bool Stillness::has_come(Instant now) {
    if (now - looked_ < kLookEvery) return false;
    looked_ = now;
    if (std::string seen = traces(); seen != seen_) {
        seen_ = std::move(seen);
        changed_ = now;
    }
    return now - changed_ >= kStillAfter || now - begun_ >= spec::node_directory::kEndingWithin;
}

}  // namespace gruca::agent
