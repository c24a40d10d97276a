// spec/event.h
//
// What a training program tells whoever follows it: one line of JSON an event, among lines meant
// for people. The member "event" says which; the structs below are the whole vocabulary.
//
//   {"event":"step","step":10,"steps":300,"loss":6.1234,...}
//
// A reader skips lines that are no events, events it does not know and members it does not know.
// Pure; thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "spec/fields.h"

namespace gruca::spec {

struct StartEvent {
    static constexpr const char* kName = "start";
    static constexpr const char* kWhen = "once on each instance, when training is about to begin";
    std::int64_t rank = 0;
    std::int64_t ranks = 1;
    std::int64_t parameters = 0;
    std::int64_t steps = 0;
    std::int64_t tokens_per_step = 0;
    std::int64_t threads = 0;
    std::string kernels = {};

    template <class Visitor>
    void fields(Visitor& visit) {
        visit("rank", rank, "Which instance this is, from 0.");
        visit("ranks", ranks, "How many instances train together.");
        visit("parameters", parameters, "Numbers the model learns.");
        visit("steps", steps, "Optimizer steps of the whole training.");
        visit("tokens_per_step", tokens_per_step,
              "Predicted tokens in a step, over all instances.");
        visit("threads", threads, "Threads of this instance.");
        visit("kernels", kernels, "Which kernels compute: cpu or reference.");
    }
};

struct ResumeEvent {
    static constexpr const char* kName = "resume";
    static constexpr const char* kWhen = "when training goes on from a checkpoint";
    std::int64_t step = 0;
    std::int64_t tokens = 0;

    template <class Visitor>
    void fields(Visitor& visit) {
        visit("step", step, "The last step done before.");
        visit("tokens", tokens, "Tokens trained on before.");
    }
};

struct StepEvent {
    static constexpr const char* kName = "step";
    static constexpr const char* kWhen = "every log_interval steps, the first and the last";
    std::int64_t step = 0;
    std::int64_t steps = 0;
    double loss = 0;
    double learning_rate = 0;
    double gradient_norm = 0;
    std::int64_t tokens = 0;
    double tokens_per_second = 0;
    double data_share = 0;
    double compute_share = 0;
    double comm_share = 0;
    double checkpoint_share = 0;
    bool skipped = false;

    template <class Visitor>
    void fields(Visitor& visit) {
        visit("step", step, "Steps done.");
        visit("steps", steps, "Steps of the whole training.");
        visit("loss", loss, "Mean cross entropy of this step's tokens, in nats.");
        visit("learning_rate", learning_rate, "Rate used in this step.");
        visit("gradient_norm", gradient_norm, "Global norm of the gradient, before clipping.");
        visit("tokens", tokens, "Tokens trained on so far.");
        visit("tokens_per_second", tokens_per_second,
              "Over the steps since the last reported one, over all instances.");
        visit("data_share", data_share, "Share of that time spent on reading samples.");
        visit("compute_share", compute_share,
              "Share spent computing: forward, backward, optimizer, evaluation.");
        visit("comm_share", comm_share,
              "Share spent adding up gradients with the other instances, waiting for them "
              "included.");
        visit("checkpoint_share", checkpoint_share, "Share spent on writing checkpoints.");
        visit("skipped", skipped,
              "The gradient was not finite; weights and optimizer state stayed as they were.");
    }
};

struct EvalEvent {
    static constexpr const char* kName = "eval";
    static constexpr const char* kWhen =
        "every eval_interval steps and at the end, with a channel validation";
    std::int64_t step = 0;
    double eval_loss = 0;
    double perplexity = 0;
    std::int64_t eval_tokens = 0;

    template <class Visitor>
    void fields(Visitor& visit) {
        visit("step", step, "Steps done.");
        visit("eval_loss", eval_loss, "Mean cross entropy of the validation tokens, in nats.");
        visit("perplexity", perplexity, "The exponential of eval_loss.");
        visit("eval_tokens", eval_tokens, "Validation tokens predicted.");
    }
};

struct CheckpointEvent {
    static constexpr const char* kName = "checkpoint";
    static constexpr const char* kWhen = "when a checkpoint is complete";
    std::int64_t step = 0;
    std::int64_t bytes = 0;
    double seconds = 0;

    template <class Visitor>
    void fields(Visitor& visit) {
        visit("step", step, "Steps done in it.");
        visit("bytes", bytes, "Size of the state saved.");
        visit("seconds", seconds, "Time it took.");
    }
};

struct EndEvent {
    static constexpr const char* kName = "end";
    static constexpr const char* kWhen = "once on each instance, after the model is written";
    std::int64_t step = 0;
    bool stopped = false;
    double loss = 0;
    std::int64_t tokens = 0;
    double seconds = 0;

    template <class Visitor>
    void fields(Visitor& visit) {
        visit("step", step, "Steps done.");
        visit("stopped", stopped, "Asked to stop before the last step.");
        visit("loss", loss, "Of the last step; NaN when a checkpoint left none to do.");
        visit("tokens", tokens, "Tokens trained on.");
        visit("seconds", seconds, "From start to end of this run.");
    }
};

struct ErrorEvent {
    static constexpr const char* kName = "error";
    static constexpr const char* kWhen = "when an instance fails; it is the last event it writes";
    std::string code = {};
    std::string message = {};

    template <class Visitor>
    void fields(Visitor& visit) {
        visit("code", code, "What kind of failure, as the exit code says it too.");
        visit("message", message, "What happened and what to do.");
    }
};

// One line, without its end.
template <class Event>
std::string event_line(const Event& event) {
    Json json = Json::object({{"event", Event::kName}});
    const Json members = write_fields(event);
    for (const auto& [key, value] : members.as_object()) json.set(key, value);
    return json.dump();
}

// The JSON of a line that holds an event, of whatever kind.
std::optional<Json> event_of_line(std::string_view line);

// "NaN", "Infinity" and "-Infinity", which is how numbers that are not finite are written.
std::optional<double> non_finite(const Json& json);

// The event, if `json` is one of that kind and well-formed.
template <class Event>
std::optional<Event> event_as(const Json& json) {
    const Json* kind = json.find("event");
    if (kind == nullptr || !kind->is_string() || kind->as_string() != Event::kName) return {};
    Event event;
    bool well_formed = true;
    auto visit = [&](std::string_view name, auto& field, std::string_view) {
        const Json* value = json.find(name);
        if (value == nullptr) return;
        if constexpr (std::is_same_v<std::remove_reference_t<decltype(field)>, double>) {
            if (const auto number = non_finite(*value)) {
                field = *number;
                return;
            }
        }
        try {
            set_field(name, value->is_string() ? value->as_string() : value->dump(), field);
        } catch (const Error&) {  // Somebody else's line that looks like one of ours.
            well_formed = false;
        }
    };
    event.fields(visit);
    return well_formed ? std::optional(event) : std::nullopt;
}

// docs/reference/metrics.md, whole.
std::string metrics_page();

}  // namespace gruca::spec
