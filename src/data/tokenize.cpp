// Files in, shards out. Workers take files in order and encode each into a stream of its own; the
// calling thread empties the streams in order, so the shards do not depend on who was faster. Every
// queue is short: a worker far ahead waits.

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/boundary.h"
#include "base/error.h"
#include "base/queue.h"
#include "data/commands.h"
#include "data/documents.h"
#include "data/encoder.h"
#include "data/file_list.h"
#include "data/progress_meter.h"
#include "data/token_shard.h"
#include "data/tokenizer.h"

namespace gruca::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBatchTokens = 1u << 20;
constexpr std::size_t kBatchesMax = 3;            // Of one file, waiting.
constexpr std::size_t kStreamsPerWorkerMax = 16;  // Files done or begun ahead of the writer.
constexpr const char* kShardName = "tokens";

// Some documents of one file.
struct Batch {
    std::vector<std::int32_t> tokens = {};
    std::vector<std::size_t> ends = {};  // Of each document, in tokens.
    DocumentCounts counts = {};          // Of the whole file, in its last batch.
    std::optional<Error> failure = {};
};

struct FileStream {
    std::int64_t bytes = 0;  // Of the file.
    Queue<Batch> batches{kBatchesMax};
};

using FileStreamPtr = std::shared_ptr<FileStream>;

class Encoding {
  public:
    Encoding(const FileList& list, const InputOptions& input, const Tokenizer& tokenizer,
             int workers)
        : list_(list),
          input_(input),
          tokenizer_(tokenizer),
          streams_(kStreamsPerWorkerMax * static_cast<std::size_t>(workers)) {
        for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
    }

    ~Encoding() {
        streams_.close();
        while (const std::optional<FileStreamPtr> stream = streams_.pop()) {
            (*stream)->batches.close();
        }
        if (current_) current_->batches.close();
    }

    // The stream of the next file, in order. Call once for each file.
    FileStreamPtr next() {
        current_ = *streams_.pop();
        return current_;
    }

  private:
    void work() {
        Encoder encoder(tokenizer_);
        for (;;) {
            auto stream = std::make_shared<FileStream>();
            std::size_t file = 0;
            {
                // Files are taken and their streams queued in one order, which is that of the list.
                const std::lock_guard lock(mutex_);
                if (next_ == list_.files.size()) return;
                file = next_++;
                stream->bytes = list_.files[file].bytes;
                if (!streams_.push(stream)) return;
            }
            encode(list_.files[file].path, encoder, *stream);
        }
    }

    void encode(const fs::path& path, Encoder& encoder, FileStream& stream) const {
        Batch batch;
        const std::int32_t end_of_text = tokenizer_.end_of_text();
        auto failure = run_guarded([&] {
            batch.counts = for_each_document(
                {.path = path, .text_field = input_.text_field}, [&](std::string_view text) {
                    encoder.append(text, batch.tokens);
                    batch.tokens.push_back(end_of_text);
                    batch.ends.push_back(batch.tokens.size());
                    if (batch.tokens.size() < kBatchTokens) return;
                    if (!stream.batches.push(std::exchange(batch, {}))) {
                        throw Error(ErrorCode::cancelled, "nobody waits for this file any more");
                    }
                });
        });
        batch.failure = std::move(failure);
        stream.batches.push(std::move(batch));
        stream.batches.close();
    }

    const FileList& list_;
    const InputOptions& input_;
    const Tokenizer& tokenizer_;
    std::mutex mutex_;  // Guards the member below, and is held while its stream is queued.
    std::size_t next_ = 0;
    Queue<FileStreamPtr> streams_;
    FileStreamPtr current_;              // Of the calling thread.
    std::vector<std::jthread> threads_;  // Joined before anything they use goes.
};

double require_fraction(double fraction) {
    if (fraction >= 0 && fraction < 1) return fraction;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the validation fraction must be at least 0 and below 1: {}", fraction));
}

// How many of the first `documents` go to validation. The slack is for fractions that a double
// holds a hair too small: 0.57 of 100 are 57.
std::int64_t validation_share(double fraction, std::int64_t documents) {
    constexpr double kSlack = 1e-6;
    return static_cast<std::int64_t>(fraction * static_cast<double>(documents) + kSlack);
}

class Split {
  public:
    Split(const TokenizeOptions& options, TokenType type)
        : fraction_(require_fraction(options.validation_fraction)),
          train_(open(options.output / "train", type)) {
        const fs::path directory = options.output / "validation";
        if (fraction_ > 0) {
            validation_ = open(directory, type);
        } else {  // What an earlier run left would be taken for a part of this one.
            fs::remove(directory / (std::string(kShardName) + ".idx"));
            fs::remove(directory / (std::string(kShardName) + ".bin"));
        }
    }

    void add(std::span<const std::int32_t> document) {
        const std::int64_t before = validation_share(fraction_, documents_);
        const bool is_validation = validation_share(fraction_, ++documents_) > before;
        (is_validation ? validation_ : train_)->add_document(document);
    }

    void finish(TokenizeResult& result) {
        if (validation_) {
            if (validation_->documents() == 0) {
                throw Error(
                    ErrorCode::invalid_argument,
                    fmt::format("the validation fraction {} takes none of the {} documents: "
                                "give a larger one",
                                fraction_, documents_));
            }
            validation_->finish();
            result.validation_documents = validation_->documents();
            result.validation_tokens = validation_->tokens();
        }
        train_->finish();
        result.train_documents = train_->documents();
        result.train_tokens = train_->tokens();
    }

  private:
    static std::unique_ptr<TokenShardWriter> open(const fs::path& directory, TokenType type) {
        fs::create_directories(directory);
        return std::make_unique<TokenShardWriter>(directory / kShardName, type);
    }

    const double fraction_;
    std::int64_t documents_ = 0;
    std::unique_ptr<TokenShardWriter> train_, validation_;
};

void add_batch(const Batch& batch, Split& split, ReadCounts& read) {
    std::size_t begin = 0;
    for (const std::size_t end : batch.ends) {
        split.add(std::span(batch.tokens).subspan(begin, end - begin));
        begin = end;
    }
    read.documents += batch.counts.documents;
    read.bytes += batch.counts.bytes;
    read.repaired += batch.counts.repaired;
}

}  // namespace

TokenizeResult tokenize(const TokenizeOptions& options, const Clock& clock,
                        const ProgressCallback& progress) {
    ProgressMeter meter(clock, progress);
    const Tokenizer tokenizer = Tokenizer::load(options.tokenizer);
    tokenizer.end_of_text();  // Throws when there is none.
    const FileList list = list_files(options.input);
    TokenizeResult result{.vocabulary = tokenizer.vocabulary()};
    Split split(options, token_type_for(tokenizer.vocabulary()));
    meter.start("tokenizing", static_cast<std::int64_t>(list.files.size()), list.bytes);
    Encoding encoding(list, options.input, tokenizer,
                      worker_count(options.workers, list.files.size()));
    for (std::size_t i = 0; i < list.files.size(); ++i) {
        const FileStreamPtr stream = encoding.next();
        while (const std::optional<Batch> batch = stream->batches.pop()) {
            if (batch->failure) throw *batch->failure;
            add_batch(*batch, split, result.read);
        }
        result.read.files += 1;
        meter.add(1, stream->bytes);
    }
    split.finish(result);
    meter.finish_stage();
    result.seconds = meter.seconds();
    return result;
}

}  // namespace gruca::data
