// cluster/trash.h
//
// Where the directory of a removed node goes: out of the way at once, and deleted by a thread of
// its own, since a job may leave files by the hundred thousand and nobody is to wait for that. What
// is still there when the program ends goes with the next Trash over the same directory.
//
// Thread-safe.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <thread>

namespace gruca::cluster {

class Trash {
  public:
    // On the file system of what it takes. Exists only while something is in it.
    explicit Trash(std::filesystem::path directory);

    // Returns when nothing is left under the tree's name. An absent one is fine. What cannot be
    // moved is deleted where it is; throws when that does not work either.
    void take(const std::filesystem::path& tree);

  private:
    bool move_here(const std::filesystem::path& tree);
    void run(const std::stop_token& stop);
    void empty(const std::stop_token& stop);

    const std::filesystem::path directory_;
    std::mutex mutex_;  // Guards whether directory_ is there, and fuller_.
    std::condition_variable_any changed_;
    bool fuller_ = true;   // Since it was last emptied.
    std::jthread thread_;  // Last: it uses all of the above.
};

}  // namespace gruca::cluster
