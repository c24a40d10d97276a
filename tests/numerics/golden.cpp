#include "golden.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"

namespace gruca::numerics {
namespace {

// The finalizer of MurmurHash3 over two numbers.
std::uint32_t mixed(std::uint32_t a, std::uint32_t b) {
    std::uint32_t h = a ^ (b * 0x9e3779b1u);
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return h ^ (h >> 16);
}

std::uint32_t fnv1a(const std::string& text) {
    std::uint32_t h = 0x811c9dc5u;
    for (const char byte : text) h = (h ^ static_cast<unsigned char>(byte)) * 0x01000193u;
    return h;
}

double formula_weight(const spec::Parameter& parameter, std::size_t place_in_file) {
    const double value =
        mixed(fnv1a(parameter.name), static_cast<std::uint32_t>(place_in_file)) / 2147483648.0 -
        1.0;
    if (parameter.is_matrix) return 0.3 * value;
    if (parameter.name.ends_with("bias")) return 0.1 * value;
    return 1 + 0.2 * value;
}

}  // namespace

Golden::Golden(const std::string& name)
    : json_(Json::parse(
          read_file(std::string(GRUCA_SOURCE_DIR) + "/tests/golden/" + name + ".json"))) {}

spec::ModelConfig Golden::config() const {
    return spec::ModelConfig::from_json(json_.at("config"));
}

spec::TrainerSpec Golden::trainer_spec() const {
    const spec::ModelConfig model = config();
    const Json& from = training().at("spec");
    spec::TrainerSpec spec;
    spec.architecture = spec::name(model.family);
    spec.layers = model.layers;
    spec.width = model.width;
    spec.heads = model.heads;
    spec.kv_heads = model.kv_heads;
    spec.hidden = model.hidden;
    spec.context_length = model.context_length;
    spec.tied_embeddings = model.tied_embeddings;
    spec.rope_theta = model.rope_theta;
    spec.norm_epsilon = model.norm_epsilon;
    spec.max_steps = from.at("max_steps").as_int();
    spec.global_batch_size = from.at("global_batch_size").as_int();
    spec.micro_batch_size = from.at("micro_batch_size").as_int();
    spec.learning_rate = from.at("learning_rate").as_double();
    spec.min_learning_rate = from.at("min_learning_rate").as_double();
    spec.warmup_steps = from.at("warmup_steps").as_int();
    spec.weight_decay = from.at("weight_decay").as_double();
    spec.beta1 = from.at("beta1").as_double();
    spec.beta2 = from.at("beta2").as_double();
    spec.epsilon = from.at("epsilon").as_double();
    spec.gradient_clip = from.at("gradient_clip").as_double();
    return spec;
}

std::vector<double> doubles_in(const Json& base64_text) {
    static_assert(std::endian::native == std::endian::little);
    const auto bytes = from_base64(base64_text.as_string());
    CHECK(bytes && bytes->size() % sizeof(double) == 0, "not an array of doubles");
    std::vector<double> values(bytes->size() / sizeof(double));
    std::memcpy(values.data(), bytes->data(), bytes->size());
    return values;
}

std::vector<double> from_file_order(const spec::Parameter& parameter,
                                    const std::vector<double>& in_file) {
    CHECK(in_file.size() == static_cast<std::size_t>(parameter.count()), "{} has {} numbers",
          parameter.name, in_file.size());
    if (!parameter.transposed_in_file) return in_file;
    const auto rows = static_cast<std::size_t>(parameter.rows);
    const auto columns = static_cast<std::size_t>(parameter.columns);
    std::vector<double> ours(in_file.size());
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) ours[r * columns + c] = in_file[c * rows + r];
    }
    return ours;
}

template <class Real>
void set_formula_weights(model::ParameterSet<Real>& weights) {
    for (std::size_t p = 0; p < weights.table().size(); ++p) {
        const spec::Parameter& parameter = weights.table()[p];
        std::vector<double> in_file(static_cast<std::size_t>(parameter.count()));
        for (std::size_t i = 0; i < in_file.size(); ++i) in_file[i] = formula_weight(parameter, i);
        const std::vector<double> ours = from_file_order(parameter, in_file);
        for (std::size_t i = 0; i < ours.size(); ++i) weights.of(p)[i] = static_cast<Real>(ours[i]);
    }
}

template void set_formula_weights(model::ParameterSet<float>&);
template void set_formula_weights(model::ParameterSet<double>&);

void FormulaSamples::read(std::int64_t index, std::span<std::int32_t> tokens) const {
    for (std::size_t j = 0; j < tokens.size(); ++j) {
        const std::uint32_t value =
            mixed(static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(j));
        tokens[j] = static_cast<std::int32_t>(value % static_cast<std::uint32_t>(vocabulary_size_));
    }
}

}  // namespace gruca::numerics
