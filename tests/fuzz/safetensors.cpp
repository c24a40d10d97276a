// A stranger's weights: whatever the header claims, every tensor lies in the file and can be read.

#include "model/safetensors.h"

#include <sys/mman.h>

#include "base/text.h"
#include "fuzz/target.h"

using gruca::model::SafetensorsFile;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const gruca::UniqueFd file(::memfd_create("safetensors", MFD_CLOEXEC));
    gruca::write_all(file.get(), std::as_bytes(std::span(data, size)));
    gruca::fuzz::takes([&] {
        const SafetensorsFile weights("/proc/self/fd/" + std::to_string(file.get()));
        for (const SafetensorsFile::Entry& entry : weights.entries()) {
            CHECK(entry.begin <= size && entry.bytes <= size - entry.begin, "outside the file");
            CHECK(weights.read(entry).size() * gruca::tensor::bytes_of(entry.dtype) == entry.bytes,
                  "{} bytes", entry.bytes);
            CHECK(weights.find(entry.name) != nullptr, "a tensor is lost: {}", entry.name);
        }
    });
    return 0;
}
