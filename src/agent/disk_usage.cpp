#include "agent/disk_usage.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFilesShown = 3;
constexpr std::uint64_t kBlockBytes = 512;

struct Consumer {
    std::uint64_t bytes = 0;
    fs::path path;
};

struct Look {
    std::vector<Consumer> largest = {};
    bool is_complete = false;
};

Look largest_files(const fs::path& work, const Clock& clock) {
    const auto end = clock.steady_now() + kLookMax;
    Look look;
    std::vector<Consumer>& largest = look.largest;
    std::error_code failure;
    fs::recursive_directory_iterator files(work, fs::directory_options::skip_permission_denied,
                                           failure);
    while (!failure && files != fs::recursive_directory_iterator() && clock.steady_now() < end) {
        struct stat facts = {};
        if (::lstat(files->path().c_str(), &facts) == 0 && S_ISREG(facts.st_mode)) {
            largest.push_back({.bytes = kBlockBytes * static_cast<std::uint64_t>(facts.st_blocks),
                               .path = files->path().lexically_relative(work)});
            std::sort(largest.begin(), largest.end(),
                      [](const Consumer& a, const Consumer& b) { return a.bytes > b.bytes; });
            if (largest.size() > kFilesShown) largest.pop_back();
        }
        files.increment(failure);
    }
    look.is_complete = failure || files == fs::recursive_directory_iterator();
    return look;
}

// As the program knows it.
std::string name_of(const fs::path& path) {
    constexpr std::array kPlaces = {std::pair("ml/", "/opt/ml/"), std::pair("tmp/", "/tmp/"),
                                    std::pair("var-tmp/", "/var/tmp/")};
    const std::string text = repair_utf8(path.string());
    for (const auto& [below, seen_as] : kPlaces) {
        if (text.starts_with(below)) return seen_as + text.substr(std::string(below).size());
    }
    return text;
}

}  // namespace

std::string disk_full_text(const fs::path& work, const Clock& clock) {
    struct statvfs disk = {};
    if (::statvfs(work.c_str(), &disk) != 0) return "";
    const std::uint64_t free = disk.f_frsize * disk.f_bavail;
    if (free >= kDiskFullBytes) return "";
    std::string text = "the disk of " + work.string() + " is full (" + human_bytes(free) +
                       " free of " + human_bytes(disk.f_frsize * disk.f_blocks) + ")";
    const Look look = largest_files(work, clock);
    const std::vector<Consumer>& files = look.largest;
    const std::string found = look.is_complete ? "" : " that were found in time";
    for (std::size_t i = 0; i < files.size(); ++i) {
        text += (i == 0 ? "; the largest of this job" + found + ": " : ", ") +
                name_of(files[i].path) + " " + human_bytes(files[i].bytes);
    }
    return text;
}

}  // namespace gruca::agent
