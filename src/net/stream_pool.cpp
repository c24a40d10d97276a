#include "net/stream_pool.h"

#include <system_error>

#include "base/boundary.h"
#include "base/log.h"

namespace gruca::net {
namespace {

constexpr auto kStopPatience = std::chrono::seconds(2);  // For transfers that are nearly done.

}  // namespace

StreamPool::StreamPool(const HttpStreamOptions& options, Served served)
    : options_(options), served_(std::move(served)) {}

bool StreamPool::has_room() const {
    const std::lock_guard lock(mutex_);
    return !stopping_ && waiting_.size() + running_.size() < options_.at_once_max;
}

bool StreamPool::start(StreamRequest request) {
    auto stream = std::make_unique<SocketStream>(
        std::move(request), Patience{.time = options_.stall_time, .bytes = options_.stall_bytes});
    const std::lock_guard lock(mutex_);
    if (stopping_ || waiting_.size() + running_.size() >= options_.at_once_max) return false;
    if (idle_ <= waiting_.size()) {
        try {
            threads_.emplace_back([this] { work(); });
        } catch (const std::system_error& error) {
            log_warning("no thread for a transfer: {}", error.what());
            return false;
        }
        ++idle_;
    }
    waiting_.push_back(std::move(stream));
    changed_.notify_one();
    return true;
}

void StreamPool::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        const std::unique_ptr<SocketStream> stream = std::move(waiting_.front());
        waiting_.pop_front();
        running_.insert(stream.get());
        --idle_;
        lock.unlock();
        const SocketStream::End end = serve(*stream);
        lock.lock();
        running_.erase(stream.get());  // From here on nobody cuts it.
        ++idle_;                       // As good as: the next transfer needs no other thread.
        changed_.notify_all();
        lock.unlock();
        served_(*stream, end);
        lock.lock();
    }
}

SocketStream::End StreamPool::serve(SocketStream& stream) {
    const auto failed = run_guarded([&] { options_.handler(stream); });
    SocketStream::End end = SocketStream::End::broken;
    const auto unfinished = run_guarded([&] { end = stream.finish(failed.has_value()); });
    const bool is_clients = failed && failed->code() == ErrorCode::unavailable;
    if (failed && !is_clients) log_error("stream handler failed: {}", failed->what());
    return unfinished ? SocketStream::End::broken : end;
}

void StreamPool::stop() {
    std::vector<std::jthread> threads;
    {
        std::unique_lock lock(mutex_);
        stopping_ = true;
        waiting_.clear();
        changed_.notify_all();
        changed_.wait_for(lock, kStopPatience, [&] { return running_.empty(); });
        for (SocketStream* stream : running_) stream->cut();
        threads.swap(threads_);
    }
}

}  // namespace gruca::net
