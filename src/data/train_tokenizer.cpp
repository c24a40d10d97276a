#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/queue.h"
#include "data/bpe_trainer.h"
#include "data/commands.h"
#include "data/documents.h"
#include "data/file_list.h"
#include "data/progress_meter.h"

namespace gruca::data {
namespace {

constexpr std::int64_t kVocabularyMin = 257;
constexpr std::size_t kReportsMax = 64;  // Waiting in the queue.

// What a worker says when a file is done, or when it must give up.
struct FileDone {
    std::int64_t bytes = 0;
    DocumentCounts counts = {};
    std::optional<Error> failure = {};
};

// Counts words on several threads; the sum is the same however the files are shared out.
class Counting {
  public:
    Counting(const FileList& list, const InputOptions& input, int workers)
        : list_(list), input_(input), counts_(static_cast<std::size_t>(workers)) {
        for (WordCounts& counts : counts_) {
            threads_.emplace_back([this, &counts] { work(counts); });
        }
    }

    ~Counting() {
        done_.close();  // A worker that cannot report any more stops.
    }

    WordCounts finish(ReadCounts& read, ProgressMeter& meter) {
        for (std::size_t i = 0; i < list_.files.size(); ++i) {
            const std::optional<FileDone> done = done_.pop();
            if (done->failure) throw *done->failure;
            read.files += 1;
            read.documents += done->counts.documents;
            read.bytes += done->counts.bytes;
            read.repaired += done->counts.repaired;
            meter.add(1, done->bytes);
        }
        for (std::jthread& thread : threads_) thread.join();
        for (std::size_t i = 1; i < counts_.size(); ++i) counts_[0].add_all(counts_[i]);
        return std::move(counts_[0]);
    }

  private:
    void work(WordCounts& counts) {
        for (std::size_t i = 0; (i = next_++) < list_.files.size();) {
            FileDone done{.bytes = list_.files[i].bytes};
            done.failure = run_guarded([&] {
                done.counts = for_each_document(
                    {.path = list_.files[i].path, .text_field = input_.text_field},
                    [&](std::string_view text) { counts.add_text(text); });
            });
            if (!done_.push(std::move(done))) return;
        }
    }

    const FileList& list_;
    const InputOptions& input_;
    std::vector<WordCounts> counts_;  // One a worker.
    std::atomic<std::size_t> next_ = 0;
    Queue<FileDone> done_{kReportsMax};
    std::vector<std::jthread> threads_;  // Joined before anything they use goes.
};

}  // namespace

TrainTokenizerResult train_tokenizer(const TrainTokenizerOptions& options, const Clock& clock,
                                     const ProgressCallback& progress) {
    if (options.vocabulary < kVocabularyMin || options.vocabulary > kVocabularyMax) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("a vocabulary has {} to {} words (256 are the bytes, one ends a "
                                "document), not {}",
                                kVocabularyMin, kVocabularyMax, options.vocabulary));
    }
    ProgressMeter meter(clock, progress);
    const FileList list = list_files(options.input);
    TrainTokenizerResult result;
    meter.start("counting words", static_cast<std::int64_t>(list.files.size()), list.bytes);
    const WordCounts words =
        Counting(list, options.input, worker_count(options.workers, list.files.size()))
            .finish(result.read, meter);
    meter.finish_stage();
    meter.start("merging", 0, options.vocabulary - kVocabularyMin);
    const TokenizerParts parts =
        train_bpe(words, {.vocabulary = options.vocabulary,
                          .min_frequency = options.min_frequency,
                          .progress = [&](std::int64_t merges) { meter.set_done(merges); }});
    result.merges = static_cast<std::int64_t>(parts.merges.size());
    meter.set_done(result.merges);
    meter.finish_stage();
    result.vocabulary = static_cast<std::int64_t>(parts.words.size());
    if (options.output.has_parent_path()) {
        std::filesystem::create_directories(options.output.parent_path());
    }
    write_file_atomic(options.output, write_tokenizer_json(parts));
    result.seconds = meter.seconds();
    return result;
}

}  // namespace gruca::data
