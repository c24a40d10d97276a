#include "tensor/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"

namespace gruca::tensor::internal {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

}  // namespace

void* allocate_zeroed(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    const bool large = bytes >= 2 * kHugePageBytes;
    const std::size_t alignment = large ? kHugePageBytes : kAlignmentBytes;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* memory = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
    if (memory == nullptr) {
        throw Error(
            ErrorCode::resource_exhausted,
            "out of memory; use a smaller batch or model; bytes wanted: " + std::to_string(bytes));
    }
    // Advice only: without huge pages everything is right, and some percent slower.
    if (large) (void)madvise(memory, rounded, MADV_HUGEPAGE);
    std::memset(memory, 0, rounded);
    return memory;
}

void release(void* memory) {
    std::free(memory);
}

}  // namespace gruca::tensor::internal
