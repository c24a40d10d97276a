#include "cluster/trash.h"

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/boundary.h"
#include "base/log.h"
#include "cluster/remove_tree.h"

namespace gruca::cluster {
namespace {

namespace fs = std::filesystem;

constexpr int kSameNameMax = 100;  // A node's id is used once; this is for whoever does otherwise.

}  // namespace

Trash::Trash(fs::path directory)
    : directory_(std::move(directory)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Trash::take(const fs::path& tree) {
    std::error_code failure;
    if (!fs::exists(fs::symlink_status(tree, failure))) return;
    if (!move_here(tree)) remove_tree(tree);
}

bool Trash::move_here(const fs::path& tree) {
    const std::lock_guard lock(mutex_);
    std::error_code failure;
    fs::create_directory(directory_, failure);
    for (int i = 0; i < kSameNameMax; ++i) {
        fs::rename(tree, directory_ / (tree.filename().string() + "." + std::to_string(i)),
                   failure);
        if (failure == std::errc::directory_not_empty || failure == std::errc::file_exists) {
            continue;
        }
        if (failure) break;
        fuller_ = true;
        changed_.notify_all();
        return true;
    }
    log_warning("{} cannot be moved and is deleted where it is: {}", tree.string(),
                failure.message());
    return false;
}

void Trash::run(const std::stop_token& stop) {
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            if (!changed_.wait(lock, stop, [this] { return fuller_; })) return;
            fuller_ = false;
        }
        const auto failure = run_guarded([&] { empty(stop); });
        if (failure && !stop.stop_requested()) {
            log_warning("files of removed nodes stay behind: {}", failure->what());
        }
        if (stop.stop_requested()) return;
    }
}

void Trash::empty(const std::stop_token& stop) {
    std::error_code missing;
    std::vector<fs::path> trees;
    for (const auto& entry : fs::directory_iterator(directory_, missing)) {
        trees.push_back(entry.path());
    }
    std::optional<Error> first;
    for (const fs::path& tree : trees) {
        const auto failure = run_guarded([&] { remove_tree(tree, stop); });
        if (failure && !first) first = *failure;
    }
    if (first) throw Error(*first);
    const std::lock_guard lock(mutex_);
    fs::remove(directory_, missing);  // Unless something has come since.
}

}  // namespace gruca::cluster
