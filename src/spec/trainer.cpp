#include "spec/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/boundary.h"
#include "base/error.h"
#include "spec/fields.h"

namespace gruca::spec {
namespace {

constexpr std::int64_t kMicroBatchChosenMax = 8;
constexpr std::int64_t kStepsMax = 100'000'000;
constexpr std::int64_t kBatchMax = 1 << 20;
constexpr std::int64_t kThreadsMax = 1024;
constexpr std::int64_t kTimeoutMax = 86400;
constexpr std::int64_t kHiddenMultiple = 64;

// "\"gpt2\"" is gpt2: the SDK's version 2 JSON-encodes every value.
std::string without_json_quotes(const std::string& text) {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') return text;
    std::string inner;
    const auto wrong = run_guarded([&] { inner = Json::parse(text).as_string(); });
    return wrong ? text : inner;
}

class Complaints {
  public:
    void range(const char* key, std::int64_t value, std::int64_t low, std::int64_t high) {
        if (value >= low && value <= high) return;
        wrong_.push_back(fmt::format("{} must be {} to {}, not {}", key, low, high, value));
    }
    void positive(const char* key, double value) {
        if (std::isfinite(value) && value > 0) return;
        wrong_.push_back(fmt::format("{} must be above 0, not {}", key, value));
    }
    void non_negative(const char* key, double value) {
        if (std::isfinite(value) && value >= 0) return;
        wrong_.push_back(fmt::format("{} must not be below 0, not {}", key, value));
    }
    void fraction(const char* key, double value) {
        if (value >= 0 && value < 1) return;
        wrong_.push_back(fmt::format("{} must be at least 0 and below 1, not {}", key, value));
    }
    void add(std::string complaint) { wrong_.push_back(std::move(complaint)); }
    bool none() const { return wrong_.empty(); }
    void require_none() const {
        if (none()) return;
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("hyperparameters: {}", fmt::join(wrong_, "; ")));
    }

  private:
    std::vector<std::string> wrong_;
};

void check_numbers(const TrainerSpec& spec, Complaints& wrong) {
    wrong.range("max_steps", spec.max_steps, 1, kStepsMax);
    wrong.range("global_batch_size", spec.global_batch_size, 1, kBatchMax);
    wrong.range("micro_batch_size", spec.micro_batch_size, 0, kBatchMax);
    wrong.positive("learning_rate", spec.learning_rate);
    wrong.non_negative("min_learning_rate", spec.min_learning_rate);
    if (spec.min_learning_rate > spec.learning_rate) {
        wrong.add(fmt::format("min_learning_rate {} is above learning_rate {}",
                              spec.min_learning_rate, spec.learning_rate));
    }
    wrong.range("warmup_steps", spec.warmup_steps, 0, kStepsMax);
    wrong.non_negative("weight_decay", spec.weight_decay);
    wrong.fraction("beta1", spec.beta1);
    wrong.fraction("beta2", spec.beta2);
    wrong.positive("epsilon", spec.epsilon);
    wrong.non_negative("gradient_clip", spec.gradient_clip);
    wrong.range("bad_steps_max", spec.bad_steps_max, 1, kStepsMax);
    wrong.range("seed", spec.seed, 0, INT64_MAX);
    wrong.range("eval_interval", spec.eval_interval, 0, kStepsMax);
    wrong.range("eval_batches", spec.eval_batches, 1, kStepsMax);
    wrong.range("checkpoint_interval", spec.checkpoint_interval, 0, kStepsMax);
    wrong.range("checkpoints_kept", spec.checkpoints_kept, 1, kStepsMax);
    wrong.range("log_interval", spec.log_interval, 1, kStepsMax);
    wrong.range("threads", spec.threads, 0, kThreadsMax);
    wrong.range("collective_timeout_s", spec.collective_timeout_s, 1, kTimeoutMax);
    if (spec.kernels != "auto" && spec.kernels != "cpu" && spec.kernels != "reference") {
        wrong.add(fmt::format("kernels must be auto, cpu or reference, not '{}'", spec.kernels));
    }
}

std::int64_t chosen_micro_batch(std::int64_t share) {
    std::int64_t size = std::min(share, kMicroBatchChosenMax);
    while (share % size != 0) --size;
    return size;
}

}  // namespace

TrainerSpec read_hyperparameters(const Json& hyperparameters) {
    TrainerSpec spec;
    for (const auto& [key, value] : hyperparameters.as_object()) {
        if (key.starts_with("sagemaker_")) continue;
        read_field(spec, key,
                   value.is_string() ? without_json_quotes(value.as_string()) : value.dump());
    }
    return spec;
}

BatchPlan require_valid(const TrainerSpec& spec, int ranks) {
    Complaints wrong;
    check_numbers(spec, wrong);
    const std::int64_t batch = spec.global_batch_size;
    const std::int64_t unit = std::max<std::int64_t>(spec.micro_batch_size, 1) * ranks;
    if (wrong.none() && batch % unit != 0) {
        const std::int64_t below = batch / unit * unit;
        wrong.add(fmt::format(
            "global_batch_size {} is not divisible by micro_batch_size {} x instances {} = {}; "
            "nearest: {}",
            batch, unit / ranks, ranks, unit,
            below > 0 ? fmt::format("{} or {}", below, below + unit) : std::to_string(unit)));
    }
    wrong.require_none();
    const std::int64_t share = batch / ranks;
    const std::int64_t micro =
        spec.micro_batch_size > 0 ? spec.micro_batch_size : chosen_micro_batch(share);
    return {.micro_batch_size = micro, .micro_batches = share / micro};
}

ModelConfig model_config(const TrainerSpec& spec, std::int64_t vocabulary_size) {
    if (spec.architecture != "gpt2" && spec.architecture != "llama") {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("architecture must be gpt2 or llama, not '{}'", spec.architecture));
    }
    ModelConfig config{.family = family_from(spec.architecture),
                       .layers = spec.layers,
                       .width = spec.width,
                       .heads = spec.heads,
                       .kv_heads = spec.kv_heads > 0 ? spec.kv_heads : spec.heads,
                       .hidden = spec.hidden,
                       .context_length = spec.context_length,
                       .vocabulary_size = vocabulary_size,
                       .tied_embeddings = spec.tied_embeddings,
                       .norm_epsilon = spec.norm_epsilon,
                       .rope_theta = spec.rope_theta};
    if (config.hidden == 0 && config.is_gpt2()) {
        config.hidden = 4 * config.width;
    } else if (config.hidden == 0) {
        const std::int64_t least = (8 * config.width + 2) / 3;
        config.hidden = (least + kHiddenMultiple - 1) / kHiddenMultiple * kHiddenMultiple;
    }
    require_valid(config);
    return config;
}

std::string hyperparameter_page() {
    std::string page =
        "# Hyperparameters of gruca/llm-trainer\n\n"
        "Generated from `src/spec/trainer.h` by `./dev docs`; a test "
        "compares them.\n\n"
        "Values are strings, as the API carries them; a value in JSON quotes, as the SageMaker SDK "
        "writes it, means the same. An unknown name is refused with the nearest known one; names "
        "beginning `sagemaker_` belong to the SDK and are ignored. Numbers that do not fit "
        "together are refused before the training allocates anything, with the nearest that do.\n\n"
        "The models have no dropout. The learning rate rises linearly over `warmup_steps`, then "
        "follows a cosine down to `min_learning_rate` at `max_steps`. The loss of a step is the "
        "sum over all its tokens divided by their number, whatever the number of instances and of "
        "accumulated micro-batches.\n\n"
        "| name | kind | default | meaning |\n|---|---|---|---|\n";
    for (const FieldFacts& facts : field_facts(TrainerSpec{})) {
        page += fmt::format("| `{}` | {} | `{}` | {} |\n", facts.name, facts.kind, facts.by_default,
                            facts.help);
    }
    return page;
}

}  // namespace gruca::spec
