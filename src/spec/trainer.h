// spec/trainer.h
//
// The hyperparameters of the built-in image gruca/llm-trainer: declared once, below; their reader,
// validation and reference page come from here. They arrive as SageMaker hands them over, a flat
// map of strings; a string value may carry JSON quotes, as the SDK's version 2 sends it.
// Pure; thread-compatible.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "spec/model_config.h"

namespace gruca::spec {

struct TrainerSpec {
    std::string architecture = "gpt2";
    std::int64_t layers = 4;
    std::int64_t width = 256;
    std::int64_t heads = 4;
    std::int64_t kv_heads = 0;
    std::int64_t hidden = 0;
    std::int64_t context_length = 256;
    std::int64_t vocabulary_size = 0;
    bool tied_embeddings = true;
    double rope_theta = 10000;
    double norm_epsilon = 1e-5;

    std::int64_t max_steps = 300;
    std::int64_t global_batch_size = 16;
    std::int64_t micro_batch_size = 0;
    double learning_rate = 1e-3;
    double min_learning_rate = 1e-4;
    std::int64_t warmup_steps = 20;
    double weight_decay = 0.1;
    double beta1 = 0.9;
    double beta2 = 0.95;
    double epsilon = 1e-8;
    double gradient_clip = 1.0;
    std::int64_t bad_steps_max = 5;
    std::int64_t seed = 1;

    std::int64_t eval_interval = 100;
    std::int64_t eval_batches = 8;
    std::int64_t checkpoint_interval = 100;
    std::int64_t checkpoints_kept = 2;
    std::int64_t log_interval = 10;
    std::string kernels = "auto";
    std::int64_t threads = 0;
    std::int64_t collective_timeout_s = 300;

    template <class Visitor>
    void fields(Visitor& visit) {
        model_fields(visit);
        optimization_fields(visit);
        running_fields(visit);
    }

  private:
    template <class Visitor>
    void model_fields(Visitor& visit) {
        visit("architecture", architecture,
              "Shape of the decoder: gpt2 (LayerNorm, learned positions, GELU) or llama (RMSNorm, "
              "rotary positions, SwiGLU). Neither has dropout.");
        visit("layers", layers, "Number of blocks.");
        visit("width", width, "Size of the residual stream; divisible by heads.");
        visit("heads", heads, "Attention heads.");
        visit("kv_heads", kv_heads,
              "Key and value heads (llama), a divisor of heads. 0: as many as heads.");
        visit("hidden", hidden,
              "Width of the feed-forward part. 0: 4 x width for gpt2, 8/3 x width rounded up to a "
              "multiple of 64 for llama.");
        visit("context_length", context_length, "Tokens in a training sample and in the window.");
        visit("vocabulary_size", vocabulary_size,
              "Rows of the embedding. 0: as many as the tokenizer.json of the channel tokenizer or "
              "train has tokens.");
        visit("tied_embeddings", tied_embeddings,
              "Whether the output projection is the token embedding.");
        visit("rope_theta", rope_theta, "Base of the rotary positions (llama).");
        visit("norm_epsilon", norm_epsilon, "Added to the variance in every norm.");
    }

    template <class Visitor>
    void optimization_fields(Visitor& visit) {
        visit("max_steps", max_steps, "Optimizer steps of the whole training.");
        visit("global_batch_size", global_batch_size,
              "Samples in a step over all instances; divisible by micro_batch_size x instances.");
        visit("micro_batch_size", micro_batch_size,
              "Samples an instance computes at once; gradients of several are accumulated. 0: the "
              "largest divisor of its share that is at most 8.");
        visit("learning_rate", learning_rate, "Peak learning rate, reached after the warm-up.");
        visit("min_learning_rate", min_learning_rate,
              "Where the cosine ends, at max_steps. At most learning_rate.");
        visit("warmup_steps", warmup_steps, "Steps over which the rate rises from zero.");
        visit("weight_decay", weight_decay,
              "AdamW's decay, on matrices only: norms and biases do not decay.");
        visit("beta1", beta1, "AdamW's decay of the mean.");
        visit("beta2", beta2, "AdamW's decay of the squared mean.");
        visit("epsilon", epsilon, "AdamW's guard against division by zero.");
        visit("gradient_clip", gradient_clip,
              "Gradients are scaled down to this global norm. 0: never.");
        visit("bad_steps_max", bad_steps_max,
              "A step whose gradient is not finite changes nothing and is reported; after this "
              "many in a row the training fails.");
        visit("seed", seed,
              "Initial weights and data order follow from it, whatever the number of instances.");
    }

    template <class Visitor>
    void running_fields(Visitor& visit) {
        visit("eval_interval", eval_interval,
              "Steps between evaluations on the channel validation; one more comes at the end. 0: "
              "only at the end.");
        visit("eval_batches", eval_batches,
              "Global batches of validation samples in an evaluation.");
        visit("checkpoint_interval", checkpoint_interval,
              "Steps between checkpoints; one more comes at the end. 0: only at the end.");
        visit("checkpoints_kept", checkpoints_kept,
              "Older checkpoints are removed once a newer one is complete.");
        visit("log_interval", log_interval, "Steps between reported steps.");
        visit("kernels", kernels,
              "auto, cpu (the fast ones) or reference (plain loops, sums in double).");
        visit("threads", threads,
              "Threads of an instance. 0: OMP_NUM_THREADS, or as many as there are cores.");
        visit("collective_timeout_s", collective_timeout_s,
              "Seconds an instance waits for the others before it fails.");
    }
};

// Reads the object of hyperparameters.json. Keys beginning "sagemaker_" are the SDK's and ignored;
// any other unknown key, or a value of the wrong kind, throws invalid_argument.
TrainerSpec read_hyperparameters(const Json& hyperparameters);

// What a step is on each of `ranks` instances.
struct BatchPlan {
    std::int64_t micro_batch_size = 0;
    std::int64_t micro_batches = 0;  // Accumulated in a step.
};

// Throws one invalid_argument that lists everything out of range, before anything is allocated.
// `ranks`: how many instances will share the batch.
BatchPlan require_valid(const TrainerSpec& spec, int ranks);

// Fills in what 0 leaves to us. Throws invalid_argument when the shape does not fit together.
ModelConfig model_config(const TrainerSpec& spec, std::int64_t vocabulary_size);

// docs/reference/hyperparameters.md, whole.
std::string hyperparameter_page();

}  // namespace gruca::spec
