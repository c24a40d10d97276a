// data/commands.h
//
// What `gruca data` does: train a tokenizer, turn text into token shards, and say how hard a text
// is. The CLI parses words into these options and prints these results; everything else is here.
//
// Results depend on the input and the options only, never on the number of workers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace gruca::data {

struct InputOptions {
    // Files, in this order, and directories, which stand for the files below them in byte order of
    // their paths. A file is read by its ending: .jsonl is a document a line, anything else one
    // document; .gz after it is unpacked.
    std::vector<std::filesystem::path> paths;
    // Which files of a directory count. A file that is named itself always does.
    std::vector<std::string> suffixes = {".txt",    ".md",    ".rst",    ".jsonl",
                                         ".txt.gz", ".md.gz", ".rst.gz", ".jsonl.gz"};
    std::string text_field = "text";  // The member of a JSON line that holds the text.
};

struct DataProgress {
    std::string stage;  // "counting words", "merging", "tokenizing"
    std::int64_t files_done = 0, files = 0;
    std::int64_t bytes_done = 0, bytes = 0;  // As they lie on disk; merges while "merging".
    double per_second = 0;                   // Of bytes, or of merges.
    double seconds_left = 0;
};

// Called from the thread that called the command, some times a second, and once at the end.
using ProgressCallback = std::function<void(const DataProgress&)>;

struct ReadCounts {
    std::int64_t files = 0;
    std::int64_t documents = 0;
    std::int64_t bytes = 0;     // Of text, unpacked.
    std::int64_t repaired = 0;  // Documents in which bytes that are not UTF-8 became U+FFFD.
};

struct TrainTokenizerOptions {
    InputOptions input;
    std::int64_t vocabulary;         // Words in all: <|endoftext|>, the 256 bytes, the merges.
    std::filesystem::path output;    // The tokenizer.json.
    std::int64_t min_frequency = 0;  // A pair seen less often is not merged.
    int workers = 0;                 // 0: one a processor.
};

struct TrainTokenizerResult {
    ReadCounts read = {};
    std::int64_t vocabulary = 0;  // Fewer than asked for when the text has no more pairs.
    std::int64_t merges = 0;
    double seconds = 0;
};

// Throws invalid_argument for a vocabulary below 257 or above kVocabularyMax, not_found for an
// input that does not exist or is empty.
TrainTokenizerResult train_tokenizer(const TrainTokenizerOptions& options, const Clock& clock,
                                     const ProgressCallback& progress);

struct TokenizeOptions {
    InputOptions input;
    std::filesystem::path tokenizer;  // A tokenizer.json with the token <|endoftext|>.
    std::filesystem::path output;  // Gets train/tokens.{bin,idx} and validation/tokens.{bin,idx}.
    // This share of the documents, evenly spread over them, goes to the validation shard: of 1 / n
    // every n-th. 0: there is none. Throws invalid_argument unless below 1.
    double validation_fraction = 0;
    int workers = 0;  // 0: one a processor.
};

struct TokenizeResult {
    ReadCounts read = {};
    std::int64_t train_documents = 0, train_tokens = 0;
    std::int64_t validation_documents = 0, validation_tokens = 0;
    std::int64_t vocabulary = 0;
    double seconds = 0;
};

TokenizeResult tokenize(const TokenizeOptions& options, const Clock& clock,
                        const ProgressCallback& progress);

// How well simple means predict the tokens of a validation text, in nats a token: what a model's
// validation loss is to be compared with.
struct TextStatistics {
    std::int64_t train_tokens = 0, validation_tokens = 0;
    double bytes_per_token = 0;  // Of the validation text.
    double unigram_nats = 0;     // Frequencies of the training text, add-one.
    double bigram_nats = 0;      // Interpolated with the unigram by Witten and Bell's rule.
    // gzip -9, its bits spread over the tokens: of the whole text, training and validation in one
    // stream, so that it has seen the neighbours; and of the validation text alone.
    double gzip_nats = 0;
    double gzip_validation_nats = 0;
};

struct TextStatisticsOptions {
    std::filesystem::path train;       // Shards, as for open_shards.
    std::filesystem::path validation;  // Shards.
    std::filesystem::path tokenizer;
};

TextStatistics text_statistics(const TextStatisticsOptions& options);

}  // namespace gruca::data
