// model/rope.h
//
// The angles of rotary positions: position t turns pair k of a head by t * frequency[k]. Plain ones
// fall off as theta^(-2k/D); RopeScaling stretches them. Formulas as in Hugging Face's
// modeling_rope_utils.py ("default", "linear", "llama3").
//
// Pure; thread-compatible.
#pragma once

#include <vector>

#include "spec/model_config.h"

namespace gruca::model {

// head_size / 2 frequencies, in radians a token.
std::vector<double> rotary_frequencies(const spec::ModelConfig& config);

}  // namespace gruca::model
