#include "train/logits.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "kernels/ops.h"
#include "model/decoder.h"
#include "model/model_directory.h"

namespace gruca::train {

std::vector<std::int32_t> parse_tokens(std::string_view text) {
    std::vector<std::int32_t> tokens;
    for (const std::string& word : split(text, ',')) {
        const auto token = parse_int(word);
        if (!token || *token < 0 || *token > INT32_MAX) {
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("tokens are numbers with commas between them, not '{}'", text));
        }
        tokens.push_back(static_cast<std::int32_t>(*token));
    }
    return tokens;
}

void print_logits(const std::filesystem::path& model, const std::vector<std::int32_t>& tokens,
                  std::ostream& out) {
    const spec::ModelConfig config = model::read_model_config(model);
    const auto count = static_cast<std::int64_t>(tokens.size());
    if (count > config.context_length) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the model sees {} tokens at most, and there are {}",
                                config.context_length, count));
    }
    model::require_tokens_below(tokens, config.vocabulary_size);
    model::ParameterSet<float> weights(config);
    model::read_weights(model, weights);
    const auto ops = kernels::make_cpu_ops();
    model::Decoder<float> decoder(config, *ops, {.weights = weights, .gradients = nullptr},
                                  {.b = 1, .t = count});
    std::vector<float> logits_v(static_cast<std::size_t>(config.vocabulary_size));
    Json rows = Json::array();
    for (std::size_t seen = 1; seen <= tokens.size(); ++seen) {
        decoder.next_token_logits(std::span(tokens).first(seen), logits_v);
        Json row = Json::array();
        for (const float logit : logits_v) row.push(static_cast<double>(logit));
        rows.push(std::move(row));
    }
    out << Json::object({{"logits", std::move(rows)}}).dump() << '\n';
}

}  // namespace gruca::train
