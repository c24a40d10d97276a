// train/schedule.h
//
// The learning rate as a pure function of the update's number: a linear rise over warmup_steps,
// then half a cosine from learning_rate down to min_learning_rate at max_steps. So it needs no
// state, and a resumed training continues on it.
#pragma once

#include <cstdint>

#include "spec/trainer.h"

namespace gruca::train {

// `update` counts from 1.
double learning_rate(const spec::TrainerSpec& spec, std::int64_t update);

}  // namespace gruca::train
