// net/stream_pool.h
//
// The threads that serve streams: one a transfer, made when needed, never more than at_once_max.
// They are apart from the server's other threads, so that slow transfers delay each other at most.
//
// Thread-safe. stop(), also called by the destructor, lets what runs end for a while, cuts the
// rest, and returns when every handler has returned.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "net/http_server.h"
#include "net/socket_stream.h"

namespace gruca::net {

class StreamPool {
  public:
    // Called on a thread of the pool when a request has been served, with what finish() said.
    using Served = std::function<void(SocketStream& stream, SocketStream::End end)>;

    StreamPool(const HttpStreamOptions& options, Served served);
    ~StreamPool() { stop(); }
    StreamPool(const StreamPool&) = delete;
    StreamPool& operator=(const StreamPool&) = delete;

    bool has_room() const;
    // False when there is no room, or it is stopping; the connection is then closed.
    bool start(StreamRequest request);
    void stop();

  private:
    void work();
    SocketStream::End serve(SocketStream& stream);

    const HttpStreamOptions options_;
    const Served served_;

    mutable std::mutex mutex_;  // Guards all below.
    std::condition_variable changed_;
    std::deque<std::unique_ptr<SocketStream>> waiting_;
    std::set<SocketStream*> running_;
    std::size_t idle_ = 0;  // Threads.
    bool stopping_ = false;
    std::vector<std::jthread> threads_;
};

}  // namespace gruca::net
