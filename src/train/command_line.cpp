#include "train/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "spec/event.h"
#include "spec/trainer.h"
#include "train/generate.h"
#include "train/job.h"
#include "train/logits.h"

namespace gruca::train {
namespace {

constexpr const char* kHelp =
    R"(Usage: gruca-train [train] [--base-dir <dir>]
       gruca-train generate --model <dir> --prompt <text> [options]
       gruca-train logits --model <dir> --tokens <number>,<number>,...
       gruca-train reference hyperparameters|metrics

  Trains a language model as SageMaker's container contract says: hyperparameters, data and the
  other instances are found below /opt/ml, where the model is left. Checkpoints go to
  $GRUCA_CHECKPOINT_URI, or to /opt/ml/checkpoints if the job has a CheckpointConfig. SIGTERM ends
  the training after the current step with a checkpoint and the model.

Options of train:
  --base-dir <dir>      Instead of /opt/ml.
  --port <number>       Where the first instance waits for the others. Default: 29400.

Options of generate:
  --model <dir>         A model directory: the unpacked model.tar.gz.
  --prompt <text>       What to continue.
  --tokens <number>     How many tokens at most. Default: 100.
  --temperature <x>     0: always the likeliest token. Default: 0.8.
  --top-k <number>      Choose among this many; 0: among all. Default: 40.
  --seed <number>       Another seed, another text. Default: 1.
  --count <number>      Continuations to print. Default: 1.

Options of logits, which prints the score of every word after each token, as JSON:
  --model <dir>         A model directory; it needs no tokenizer.json.
  --tokens <numbers>    What the model sees.

Example:
  gruca-train generate --model ./model --prompt "The kernel" --tokens 60
)";

[[noreturn]] void refuse(const std::string& what) {
    throw Error(ErrorCode::invalid_argument, what + "; see gruca-train --help");
}

// "--name value" pairs of a command that knows these names.
std::map<std::string, std::string> read_options(const std::vector<std::string>& arguments,
                                                const std::vector<std::string>& known) {
    std::map<std::string, std::string> options;
    for (std::size_t i = 0; i < arguments.size(); i += 2) {
        const std::string& name = arguments[i];
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            const auto close = nearest(name, known);
            refuse(close ? fmt::format("no option {}; did you mean {}?", name, *close)
                         : "no option " + name);
        }
        if (i + 1 == arguments.size()) refuse("a value is missing after " + name);
        options[name] = arguments[i + 1];
    }
    return options;
}

std::int64_t whole(const std::map<std::string, std::string>& options, const std::string& name,
                   std::int64_t otherwise, std::int64_t least, std::int64_t most) {
    const auto found = options.find(name);
    if (found == options.end()) return otherwise;
    const auto value = parse_int(found->second);
    if (!value || *value < least || *value > most) {
        refuse(fmt::format("{} must be a number from {} to {}, not '{}'", name, least, most,
                           found->second));
    }
    return *value;
}

int run_generate(const Process& process, const std::vector<std::string>& arguments) {
    constexpr std::int64_t kTokensMax = 1'000'000;
    constexpr std::int64_t kCountMax = 1000;
    const auto options = read_options(arguments, {"--model", "--prompt", "--tokens",
                                                  "--temperature", "--top-k", "--seed", "--count"});
    if (!options.contains("--model")) refuse("--model is missing");
    if (!options.contains("--prompt")) refuse("--prompt is missing");
    GenerateOptions wanted{.model = options.at("--model"), .prompt = options.at("--prompt")};
    wanted.tokens = whole(options, "--tokens", wanted.tokens, 1, kTokensMax);
    wanted.top_k = whole(options, "--top-k", wanted.top_k, 0, INT32_MAX);
    wanted.seed = whole(options, "--seed", wanted.seed, 0, INT64_MAX);
    wanted.count = whole(options, "--count", wanted.count, 1, kCountMax);
    if (options.contains("--temperature")) {
        const auto value = parse_double(options.at("--temperature"));
        if (!value || !(*value >= 0 && *value <= 1000)) {
            refuse("--temperature must be a number from 0 to 1000, not '" +
                   options.at("--temperature") + "'");
        }
        wanted.temperature = *value;
    }
    generate(wanted, process.out);
    return 0;
}

int run_logits(const Process& process, const std::vector<std::string>& arguments) {
    const auto options = read_options(arguments, {"--model", "--tokens"});
    for (const char* needed : {"--model", "--tokens"}) {
        if (!options.contains(needed)) refuse(std::string(needed) + " is missing");
    }
    print_logits(options.at("--model"), parse_tokens(options.at("--tokens")), process.out);
    return 0;
}

int run_train(const Process& process, const std::vector<std::string>& arguments) {
    const auto options = read_options(arguments, {"--base-dir", "--port"});
    JobOptions job{.checkpoint_uri = process.environment("GRUCA_CHECKPOINT_URI"),
                   .job_name = process.environment("TRAINING_JOB_NAME"),
                   .out = process.out,
                   .clock = process.clock,
                   .stop_asked = process.stop_asked};
    if (options.contains("--base-dir")) job.base_dir = options.at("--base-dir");
    job.rendezvous_port =
        static_cast<std::uint16_t>(whole(options, "--port", kRendezvousPort, 1, 65535));
    return run_job(job);
}

}  // namespace

int run_command(const Process& process) {
    std::vector<std::string> arguments = process.arguments;
    const bool wants_help = !arguments.empty() && (arguments[0] == "help" || arguments[0] == "-h" ||
                                                   arguments.back() == "--help");
    if (wants_help) {
        process.out << kHelp;
        return 0;
    }
    std::string command = "train";
    if (!arguments.empty() && !arguments[0].starts_with("-")) {
        command = arguments[0];
        arguments.erase(arguments.begin());
    }
    if (command == "train") return run_train(process, arguments);
    if (command == "generate") return run_generate(process, arguments);
    if (command == "logits") return run_logits(process, arguments);
    if (command != "reference") refuse("no command " + command);
    if (arguments == std::vector<std::string>{"hyperparameters"}) {
        process.out << spec::hyperparameter_page();
    } else if (arguments == std::vector<std::string>{"metrics"}) {
        process.out << spec::metrics_page();
    } else {
        refuse("reference is followed by hyperparameters or metrics");
    }
    return 0;
}

}  // namespace gruca::train
