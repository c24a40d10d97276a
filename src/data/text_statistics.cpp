#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "data/commands.h"
#include "data/token_shard.h"
#include "data/tokenizer.h"

namespace gruca::data {
namespace {

// So many tokens of each text are looked at; a larger one is judged by its beginning.
constexpr std::int64_t kTokensMax = 50'000'000;

std::vector<std::int32_t> read_tokens(const std::filesystem::path& path, std::int64_t vocabulary) {
    std::vector<std::int32_t> tokens;
    for (const auto& shard : open_shards({path})) {
        for (std::int64_t i = 0; i < shard->sequences(); ++i) {
            const auto before = static_cast<std::int64_t>(tokens.size());
            const std::int64_t take = std::min(shard->length(i), kTokensMax - before);
            tokens.resize(static_cast<std::size_t>(before + take));
            shard->read(i, 0, vocabulary, std::span(tokens).last(static_cast<std::size_t>(take)));
        }
    }
    if (tokens.size() < 2) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the text has {} tokens, too few to say anything: {}",
                                tokens.size(), path.string()));
    }
    return tokens;
}

// Add-one: a word never seen counts as seen once.
std::vector<double> unigram_of(const std::vector<std::int32_t>& train, std::int64_t vocabulary) {
    std::vector<double> shares(static_cast<std::size_t>(vocabulary), 1.0);
    for (const std::int32_t token : train) shares[static_cast<std::size_t>(token)] += 1;
    const double all = static_cast<double>(train.size()) + static_cast<double>(vocabulary);
    for (double& share : shares) share /= all;
    return shares;
}

double unigram_nats(const std::vector<double>& shares, const std::vector<std::int32_t>& text) {
    double sum = 0;
    for (const std::int32_t token : text) sum -= std::log(shares[static_cast<std::size_t>(token)]);
    return sum / static_cast<double>(text.size());
}

std::uint64_t bigram_at(const std::vector<std::int32_t>& tokens, std::size_t at) {
    return std::uint64_t{static_cast<std::uint32_t>(tokens[at])} << 32 |
           static_cast<std::uint32_t>(tokens[at + 1]);
}

// Witten-Bell: after a word seen c times with t different successors, the unigram gets t / (c + t).
class Bigram {
  public:
    Bigram(const std::vector<std::int32_t>& train, std::int64_t vocabulary)
        : counts_(static_cast<std::size_t>(vocabulary)),
          kinds_(static_cast<std::size_t>(vocabulary)) {
        pairs_.reserve(train.size() - 1);
        for (std::size_t i = 0; i + 1 < train.size(); ++i) pairs_.push_back(bigram_at(train, i));
        std::sort(pairs_.begin(), pairs_.end());
        for (std::size_t i = 0; i < pairs_.size(); ++i) {
            const auto word = static_cast<std::size_t>(pairs_[i] >> 32);
            counts_[word] += 1;
            if (i == 0 || pairs_[i] != pairs_[i - 1]) kinds_[word] += 1;
        }
    }

    double nats(const std::vector<double>& unigram, const std::vector<std::int32_t>& text) const {
        double sum = -std::log(unigram[static_cast<std::size_t>(text[0])]);
        for (std::size_t i = 0; i + 1 < text.size(); ++i) {
            const auto word = static_cast<std::size_t>(text[i]);
            const auto [first, last] =
                std::equal_range(pairs_.begin(), pairs_.end(), bigram_at(text, i));
            const double all = counts_[word] + kinds_[word];
            const double base = unigram[static_cast<std::size_t>(text[i + 1])];
            const double seen = static_cast<double>(last - first);
            sum -= std::log(all == 0 ? base : (seen + kinds_[word] * base) / all);
        }
        return sum / static_cast<double>(text.size());
    }

  private:
    std::vector<std::uint64_t> pairs_;  // Sorted.
    std::vector<double> counts_, kinds_;
};

std::size_t gzip_bytes(std::string_view text) {
    z_stream stream = {};
    const int ready = ::deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    CHECK(ready == Z_OK, "deflateInit2 returns {}", ready);
    std::vector<Bytef> out(64u << 10);
    std::size_t bytes = 0;
    int status = Z_OK;
    while (status != Z_STREAM_END) {
        constexpr std::size_t kPiece = 1u << 20;
        const std::string_view piece = text.substr(0, kPiece);
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
        stream.avail_in = static_cast<uInt>(piece.size());
        text.remove_prefix(piece.size());
        do {
            stream.next_out = out.data();
            stream.avail_out = static_cast<uInt>(out.size());
            status = ::deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
            bytes += out.size() - stream.avail_out;
        } while (stream.avail_out == 0);
    }
    ::deflateEnd(&stream);
    return bytes;
}

double gzip_nats(std::string_view text, double tokens) {
    return static_cast<double>(gzip_bytes(text)) * 8 * std::numbers::ln2 / tokens;
}

}  // namespace

TextStatistics text_statistics(const TextStatisticsOptions& options) {
    const Tokenizer tokenizer = Tokenizer::load(options.tokenizer);
    const std::int64_t vocabulary = tokenizer.vocabulary();
    const std::vector<std::int32_t> train = read_tokens(options.train, vocabulary);
    const std::vector<std::int32_t> validation = read_tokens(options.validation, vocabulary);
    const std::vector<double> unigram = unigram_of(train, vocabulary);
    const std::string text = tokenizer.decode(validation, false);
    const auto tokens = static_cast<double>(validation.size());
    return {.train_tokens = static_cast<std::int64_t>(train.size()),
            .validation_tokens = static_cast<std::int64_t>(validation.size()),
            .bytes_per_token = static_cast<double>(text.size()) / tokens,
            .unigram_nats = unigram_nats(unigram, validation),
            .bigram_nats = Bigram(train, vocabulary).nats(unigram, validation),
            .gzip_nats = gzip_nats(tokenizer.decode(train, false) + text,
                                   static_cast<double>(train.size()) + tokens),
            .gzip_validation_nats = gzip_nats(text, tokens)};
}

}  // namespace gruca::data
