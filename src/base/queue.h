// base/queue.h
//
// A bounded queue between threads. It can be closed: producers are then refused, consumers receive
// what is left and after that nothing.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace gruca {

template <class T>
class Queue {
  public:
    explicit Queue(std::size_t items_max) : items_max_(items_max) {}
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    // Waits for room. False when the queue is closed; the item is then dropped.
    bool push(T item) {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [&] { return closed_ || items_.size() < items_max_; });
        return push_locked(std::move(item), lock);
    }

    // False at once when the queue is full or closed.
    bool try_push(T item) {
        std::unique_lock lock(mutex_);
        if (items_.size() >= items_max_) return false;
        return push_locked(std::move(item), lock);
    }

    // Waits for an item. Nothing when the queue is closed and empty.
    std::optional<T> pop() {
        std::unique_lock lock(mutex_);
        items_or_end_.wait(lock, [&] { return closed_ || !items_.empty(); });
        return pop_locked(lock);
    }

    // As pop, but gives up after `patience`; nothing then means "not yet" or "never again".
    std::optional<T> pop_for(std::chrono::milliseconds patience) {
        std::unique_lock lock(mutex_);
        items_or_end_.wait_for(lock, patience, [&] { return closed_ || !items_.empty(); });
        return pop_locked(lock);
    }

    void close() {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        room_.notify_all();
        items_or_end_.notify_all();
    }

    bool is_closed() const {
        const std::lock_guard lock(mutex_);
        return closed_;
    }

  private:
    bool push_locked(T item, std::unique_lock<std::mutex>& lock) {
        if (closed_) return false;
        items_.push_back(std::move(item));
        lock.unlock();
        items_or_end_.notify_one();
        return true;
    }

    std::optional<T> pop_locked(std::unique_lock<std::mutex>& lock) {
        if (items_.empty()) return std::nullopt;
        std::optional<T> item(std::move(items_.front()));
        items_.pop_front();
        lock.unlock();
        room_.notify_one();
        return item;
    }

    const std::size_t items_max_;
    mutable std::mutex mutex_;  // Guards the two members below.
    std::deque<T> items_;
    bool closed_ = false;
    std::condition_variable room_;
    std::condition_variable items_or_end_;
};

}  // namespace gruca
