// agent/outputs.h
//
// What a job leaves behind, on its way into the store: the trees of /opt/ml/model and
// /opt/ml/output/data, streamed, as archives or as plain objects. Trees of several nodes are merged
// by adding them to one sink; see FirstWins.
//
// Owned by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <stop_token>
#include <string>

#include "store/object_store.h"

namespace gruca::agent {

struct OutputEntry {
    enum class Kind { directory, file, link };

    std::string path;
    Kind kind = Kind::file;
    std::uint64_t bytes = 0;
    unsigned mode = 0644;
    std::int64_t modified_s = 0;
    std::string target = {};  // Of a link.
};

// Fills the span from the file's next byte on; returns fewer only at its end.
using ReadNext = std::function<std::size_t(std::span<std::byte>)>;

// Nothing is in the store until finish() has returned.
class OutputSink {
  public:
    virtual ~OutputSink() = default;
    virtual void add(const OutputEntry& entry, const ReadNext& read) = 0;
    virtual void finish() = 0;
};

enum class Compression { none, gzip };

// One object: a tar archive. Links are archived as links.
std::unique_ptr<OutputSink> make_archive(store::ObjectStore& store, const std::string& key,
                                         Compression compression);

// One object a file, its path appended to `prefix`. Directories and links are passed over.
std::unique_ptr<OutputSink> make_plain_objects(store::ObjectStore& store,
                                               const std::string& prefix);

// Passes on the first entry of every path. A later one of another node is left out, and a line in
// the agent's log says so; directories meet without a word.
class FirstWins final : public OutputSink {
  public:
    explicit FirstWins(std::unique_ptr<OutputSink> sink) : sink_(std::move(sink)) {}
    void add(const OutputEntry& entry, const ReadNext& read) override;
    void finish() override { sink_->finish(); }

  private:
    const std::unique_ptr<OutputSink> sink_;
    std::set<std::string> seen_;
};

// Both throw cancelled when `stop` is requested. `root` is an open directory.
void add_tree(int root, OutputSink& sink, const std::stop_token& stop);
// Throws data_loss for an archive that make_archive cannot have written: a path out of its tree, a
// device, a hard link, a file larger than the archive itself.
void add_archive(const store::ObjectStore& store, const std::string& key, OutputSink& sink,
                 const std::stop_token& stop);

}  // namespace gruca::agent
