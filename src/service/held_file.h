// service/held_file.h
//
// For tests: a file on a disk that does not answer. Whoever opens it for writing waits until this
// is gone (or the kernel's lease-break-time, 45 s, is over).
//
// Owned by one thread.
#pragma once

#include <fcntl.h>
#include <signal.h>

#include <filesystem>

#include "base/file.h"

namespace gruca::service::testing {

class HeldFile {
  public:
    explicit HeldFile(const std::filesystem::path& path) : file_(open_file(path, O_RDONLY)) {
        ::signal(SIGIO, SIG_IGN);  // How the kernel says that somebody waits.
        is_held_ = ::fcntl(file_.get(), F_SETLEASE, F_RDLCK) == 0;
    }
    HeldFile(const HeldFile&) = delete;
    HeldFile& operator=(const HeldFile&) = delete;

    bool is_held() const { return is_held_; }

  private:
    const UniqueFd file_;
    bool is_held_ = false;
};

}  // namespace gruca::service::testing
