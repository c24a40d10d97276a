#include "train/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "data/tokenizer.h"
#include "model/incremental_decoder.h"
#include "model/model_directory.h"
#include "train/sampling.h"

namespace gruca::train {
namespace {

namespace fs = std::filesystem;

// Passes on what is whole: a token may end in the middle of a character.
class TextStream {
  public:
    explicit TextStream(std::ostream& out) : out_(out) {}

    void write(std::string_view bytes) {
        held_ += bytes;
        const std::size_t whole = held_.size() - unfinished_bytes();
        out_ << repair_utf8(std::string_view(held_).substr(0, whole)) << std::flush;
        held_.erase(0, whole);
    }
    void finish() {
        out_ << repair_utf8(held_) << std::flush;
        held_.clear();
    }

  private:
    // Of a character at the end that lacks some of its bytes.
    std::size_t unfinished_bytes() const {
        for (std::size_t back = 1; back <= std::min<std::size_t>(3, held_.size()); ++back) {
            const auto byte = static_cast<unsigned char>(held_[held_.size() - back]);
            if ((byte & 0xC0) == 0x80) continue;
            const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
            return length > back ? back : 0;
        }
        return 0;
    }

    std::ostream& out_;
    std::string held_;
};

class Generator {
  public:
    explicit Generator(const fs::path& directory)
        : config_(model::read_model_config(directory)),
          tokenizer_(load_tokenizer(directory)),
          weights_(config_),
          ops_(kernels::make_cpu_ops()),
          decoder_(config_, *ops_, weights_) {
        model::read_weights(directory, weights_);
        words_ =
            static_cast<std::size_t>(std::min(tokenizer_.vocabulary(), config_.vocabulary_size));
    }

    void run(const GenerateOptions& options, std::uint64_t number, std::ostream& out) {
        TextStream stream(out);
        stream.write(options.prompt);
        const Philox chance(static_cast<std::uint64_t>(options.seed), number);
        std::vector<std::int32_t> tokens = encode(options.prompt);
        std::span<const float> logits = feed(tokens);
        for (std::int64_t i = 0; i < options.tokens; ++i) {
            const std::int32_t token = choose_token(
                logits.first(words_), {.temperature = options.temperature, .top_k = options.top_k},
                chance.uniform(static_cast<std::uint64_t>(i)));
            if (token == tokenizer_.special_token(data::kEndOfText)) break;
            stream.write(tokenizer_.decode(std::span(&token, 1)));
            tokens.push_back(token);
            const bool has_room = decoder_.length() < config_.context_length;
            logits = has_room ? decoder_.append(token) : feed(tokens);
        }
        stream.finish();
        out << '\n' << std::flush;
    }

  private:
    static data::Tokenizer load_tokenizer(const fs::path& directory) {
        const fs::path path = directory / "tokenizer.json";
        if (!fs::exists(path)) {
            throw Error(ErrorCode::not_found,
                        fmt::format("the model has no tokenizer.json, so it cannot read or write "
                                    "text: {}",
                                    directory.string()));
        }
        return data::Tokenizer::load(path);
    }

    std::vector<std::int32_t> encode(const std::string& prompt) const {
        std::vector<std::int32_t> tokens = tokenizer_.encode_with_special_tokens(prompt);
        if (tokens.empty()) tokens.push_back(tokenizer_.end_of_text());  // A document's beginning.
        for (const std::int32_t token : tokens) {
            if (token < config_.vocabulary_size) continue;
            throw Error(ErrorCode::data_loss,
                        fmt::format("tokenizer.json does not belong to this model: token {} of a "
                                    "vocabulary of {}",
                                    token, config_.vocabulary_size));
        }
        return tokens;
    }

    // Starts anew with all `tokens`, if the model can see them, or else with their end: half of
    // what it can see, so that there is room.
    std::span<const float> feed(const std::vector<std::int32_t>& tokens) {
        const auto context = static_cast<std::size_t>(config_.context_length);
        const std::size_t seen =
            tokens.size() <= context ? tokens.size() : std::max<std::size_t>(context / 2, 1);
        decoder_.clear();
        std::span<const float> logits;
        for (std::size_t i = tokens.size() - seen; i < tokens.size(); ++i) {
            logits = decoder_.append(tokens[i]);
        }
        return logits;
    }

    const spec::ModelConfig config_;
    const data::Tokenizer tokenizer_;
    model::ParameterSet<float> weights_;
    const std::unique_ptr<kernels::Ops<float>> ops_;
    model::IncrementalDecoder<float> decoder_;
    std::size_t words_;
};

}  // namespace

void generate(const GenerateOptions& options, std::ostream& out) {
    Generator generator(options.model);
    for (std::int64_t i = 0; i < options.count; ++i) {
        if (i > 0) out << "--------\n";
        generator.run(options, static_cast<std::uint64_t>(i), out);
    }
}

}  // namespace gruca::train
