// model/config_json.h
//
// A decoder's shape in the words of Hugging Face's config.json: GPT2Config, LlamaConfig,
// MistralConfig, Qwen2Config, Qwen3Config. A member that would change what is computed and is not
// supported is refused by name; members that are not known are kept out of it and ignored.
//
// Pure; thread-compatible.
#pragma once

#include "base/json.h"
#include "spec/model_config.h"

namespace gruca::model {

// Without the members that say nothing of the shape (token ids, types).
Json config_json(const spec::ModelConfig& config);

// Defaults are those of transformers. Throws invalid_argument, naming member, value and what would
// do. The result is not yet checked by spec::require_valid.
spec::ModelConfig config_of_json(const Json& json);

}  // namespace gruca::model
