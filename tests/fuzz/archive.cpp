// A node's part of the outputs, read back to be merged: a job with keys to the store can have put
// anything there. What is taken stays in its tree and is no larger than the part that held it.

#include "agent/outputs.h"
#include "base/text.h"
#include "fuzz/target.h"
#include "store/memory_store.h"

namespace agent = gruca::agent;

namespace {

struct Merged final : agent::OutputSink {
    void add(const agent::OutputEntry& entry, const agent::ReadNext& read) override {
        CHECK(!entry.path.empty() && !entry.path.starts_with('/'), "{}", entry.path);
        for (const std::string& part : gruca::split(entry.path, '/')) {
            CHECK(!part.empty() && part != "." && part != "..", "{}", entry.path);
        }
        CHECK((entry.mode & ~0777u) == 0 || entry.kind != agent::OutputEntry::Kind::file ||
                  (entry.mode & 07000u) == 0,
              "mode {:o}", entry.mode);
        if (entry.kind != agent::OutputEntry::Kind::file) return;
        std::byte piece[4096];
        while (const std::size_t got = read(piece)) bytes += got;
    }
    void finish() override {}

    std::uint64_t bytes = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gruca::store::MemoryStore store;
    store.put("b/part.tar", gruca::fuzz::text_of(data, size));
    Merged merged;
    gruca::fuzz::takes([&] { agent::add_archive(store, "b/part.tar", merged, {}); });
    CHECK(merged.bytes <= size, "{} bytes out of {}", merged.bytes, size);
    gruca::fuzz::takes([&] {
        const auto sink = agent::make_archive(store, "b/whole.tar", agent::Compression::none);
        agent::add_archive(store, "b/part.tar", *sink, {});
        sink->finish();
        agent::add_archive(store, "b/whole.tar", merged, {});
    });
    return 0;
}
