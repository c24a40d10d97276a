#include "agent/log_shipper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/boundary.h"
#include "base/error.h"
#include "base/log.h"

namespace gruca::agent {
namespace {

// The file is looked at so often even if the kernel should report no change.
constexpr int kLookAgainMs = 1000;

std::string read_at(int fd, std::uint64_t offset, std::size_t bytes_max) {
    struct stat facts = {};
    if (::fstat(fd, &facts) != 0) throw_errno("cannot look at the log");
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    if (size <= offset) return "";
    std::string piece(std::min<std::uint64_t>(size - offset, bytes_max), '\0');
    ssize_t got = 0;
    do {
        got = ::pread(fd, piece.data(), piece.size(), static_cast<off_t>(offset));
    } while (got < 0 && errno == EINTR);
    if (got < 0) throw_errno("cannot read the log");
    piece.resize(static_cast<std::size_t>(got));
    return piece;
}

}  // namespace

LogShipper::LogShipper(const std::filesystem::path& log, ServiceLink& service)
    : file_(open_file(log, O_RDWR | O_CREAT | O_APPEND, 0600)),
      service_(service),
      space_(log, service),
      changes_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_.is_open()) throw_errno("cannot create an event descriptor");
    if (changes_.is_open()) ::inotify_add_watch(changes_.get(), log.c_str(), IN_MODIFY);
    thread_ = std::jthread([this](std::stop_token stop) { ship(stop); });
}

LogShipper::~LogShipper() {
    thread_.request_stop();
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = ::write(wake_.get(), &one, sizeof one);
}

void LogShipper::finish(std::function<void()> complete) {
    {
        const std::lock_guard lock(mutex_);
        if (!complete_) complete_ = std::move(complete);
        stopped_.notify_all();
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = ::write(wake_.get(), &one, sizeof one);
}

void LogShipper::ship(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        std::function<void()> complete;
        {  // Looked at before the last piece: whoever said so has seen the file's end.
            const std::lock_guard lock(mutex_);
            complete = complete_;
        }
        catch_up(stop);
        if (stop.stop_requested()) return;
        if (complete) return complete();
        wait_for_more();
    }
}

// Returns when the service has what the file has, or when it is told to stop.
void LogShipper::catch_up(const std::stop_token& stop) {
    for (int failures = 0; !stop.stop_requested();) {
        std::size_t shipped = 0;
        const std::optional<Error> failure = run_guarded([&] { shipped = ship_piece(); });
        if (!failure) {
            if (shipped == 0) return;
            if (shipped < kLogPieceBytes) collect(stop);
            failures = 0;
            continue;
        }
        asked_ = false;
        if (++failures == 1) log_warning("the log cannot be delivered now: {}", failure->what());
        std::unique_lock lock(mutex_);
        stopped_.wait_for(lock, stop, pause_after(failures), [] { return false; });
    }
}

std::size_t LogShipper::ship_piece() {
    if (!asked_) {
        // No bytes at offset 0 are never beyond what the service has: its answer is the truth.
        offset_ = service_.append_log(0, "");
        asked_ = true;
    }
    std::string piece = read_at(file_.get(), offset_, kLogPieceBytes);
    const std::size_t bytes = piece.size();
    if (bytes == 0) return 0;
    offset_ = service_.append_log(offset_, std::move(piece));
    space_.note_stored(offset_);
    return bytes;
}

void LogShipper::collect(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, stop, kLogCollectTime, [this] { return complete_ != nullptr; });
}

void LogShipper::wait_for_more() {
    std::array<pollfd, 2> waiting = {pollfd{.fd = changes_.get(), .events = POLLIN, .revents = 0},
                                     pollfd{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    ::poll(waiting.data(), waiting.size(), kLookAgainMs);
    std::array<char, 4096> events;
    while (changes_.is_open() && ::read(changes_.get(), events.data(), events.size()) > 0) {
    }
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
}

}  // namespace gruca::agent
