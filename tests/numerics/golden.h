// tests/numerics/golden.h
//
// The golden files of tests/golden, and the formulas from which tests/golden/make_golden.py takes
// weights and tokens. What PyTorch computed is in the file; what it computed it from is here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/parameters.h"
#include "spec/model_config.h"
#include "spec/trainer.h"
#include "train/sample_source.h"

namespace gruca::numerics {

class Golden {
  public:
    explicit Golden(const std::string& name);  // "gpt2" or "llama".

    spec::ModelConfig config() const;
    spec::TrainerSpec trainer_spec() const;

    const Json& batch() const { return json_.at("batch"); }
    const Json& training() const { return json_.at("training"); }

  private:
    Json json_;
};

std::vector<double> doubles_in(const Json& base64_text);

// Numbers of a parameter as its file has them, in the order in which we keep them.
std::vector<double> from_file_order(const spec::Parameter& parameter,
                                    const std::vector<double>& in_file);

template <class Real>
void set_formula_weights(model::ParameterSet<Real>& weights);

// Sample `index` of the formula.
class FormulaSamples final : public train::SampleSource {
  public:
    explicit FormulaSamples(std::int64_t vocabulary_size) : vocabulary_size_(vocabulary_size) {}
    std::int64_t count() const override { return 1'000'000; }
    void read(std::int64_t index, std::span<std::int32_t> tokens) const override;

  private:
    std::int64_t vocabulary_size_;
};

}  // namespace gruca::numerics
