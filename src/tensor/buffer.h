// tensor/buffer.h
//
// Owned memory for numbers: a fixed array that promises
//   * its start is 64-byte aligned: a cache line, and the widest vector;
//   * the memory is zero at first, and touched, so that the first step is as fast as the second;
//   * a large one asks for huge pages.
// Running out of memory throws resource_exhausted and says how much was wanted.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace gruca::tensor {

inline constexpr std::size_t kAlignmentBytes = 64;

namespace internal {
void* allocate_zeroed(std::size_t bytes);
void release(void* memory);
}  // namespace internal

template <class T>
class Buffer {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    Buffer() = default;
    explicit Buffer(std::int64_t count) : count_(count) {
        CHECK(count >= 0, "buffer of {} elements", count);
        data_ =
            static_cast<T*>(internal::allocate_zeroed(static_cast<std::size_t>(count) * sizeof(T)));
    }
    ~Buffer() { internal::release(data_); }
    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
        return *this;
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::int64_t size() const { return count_; }
    std::span<T> span() { return {data_, static_cast<std::size_t>(count_)}; }
    std::span<const T> span() const { return {data_, static_cast<std::size_t>(count_)}; }
    T& operator[](std::int64_t i) { return data_[i]; }
    const T& operator[](std::int64_t i) const { return data_[i]; }

  private:
    T* data_ = nullptr;
    std::int64_t count_ = 0;
};

}  // namespace gruca::tensor
