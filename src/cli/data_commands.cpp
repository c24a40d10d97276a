#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "data/commands.h"

namespace gruca::cli {
namespace {

// Stages one after another, each a line: redrawn in place on a terminal, else printed when done.
class StageLine {
  public:
    explicit StageLine(Context& context) : context_(context) {}
    ~StageLine() { finish(); }
    StageLine(const StageLine&) = delete;
    StageLine& operator=(const StageLine&) = delete;

    void show(const data::DataProgress& progress) {
        if (progress.stage != stage_) finish();
        stage_ = progress.stage;
        const std::string before = line_;
        line_ = text_of(progress);
        if (!context_.out_is_terminal) return;
        context_.err << "\r" << line_;
        if (line_.size() < before.size()) {
            context_.err << std::string(before.size() - line_.size(), ' ');
        }
        context_.err.flush();
    }

  private:
    static std::string text_of(const data::DataProgress& progress) {
        std::string text = progress.stage;
        if (progress.bytes > 0) {
            text += fmt::format("  {} %", progress.bytes_done * 100 / progress.bytes);
        }
        if (progress.files > 0) {
            text += fmt::format("  {}/{} files", progress.files_done, progress.files);
        }
        if (progress.bytes_done < progress.bytes && progress.seconds_left > 0) {
            text += "  " + human_seconds(progress.seconds_left) + " left";
        }
        return text;
    }

    void finish() {
        if (line_.empty()) return;
        context_.err << (context_.out_is_terminal ? "" : line_) << "\n";
        line_.clear();
    }

    Context& context_;
    std::string stage_;
    std::string line_;
};

std::vector<std::filesystem::path> input_paths(const Arguments& arguments) {
    std::vector<std::filesystem::path> paths;
    for (const std::string& path : arguments.all("--input")) paths.emplace_back(path);
    if (const auto list = arguments.find("--files-from")) {
        for (const std::string& line : split(read_file(*list), '\n')) {
            if (!trim(line).empty()) paths.emplace_back(std::string(trim(line)));
        }
    }
    if (paths.empty()) {
        throw Error(ErrorCode::invalid_argument,
                    "no text is given; name files with --input or --files-from");
    }
    return paths;
}

data::InputOptions input_of(const Arguments& arguments) {
    data::InputOptions input{.paths = input_paths(arguments)};
    if (const auto field = arguments.find("--text-field")) input.text_field = *field;
    return input;
}

std::string require_option(const Arguments& arguments, const std::string& name) {
    const auto value = arguments.find(name);
    if (!value) throw Error(ErrorCode::invalid_argument, name + " is missing; see --help");
    return *value;
}

double fraction_of(const Arguments& arguments) {
    const std::string text = arguments.get("--validation-fraction", "0");
    const auto fraction = parse_double(text);
    if (!fraction || !(*fraction >= 0 && *fraction < 1)) {
        throw Error(ErrorCode::invalid_argument,
                    "--validation-fraction must be at least 0 and below 1: '" + text + "'");
    }
    return *fraction;
}

int workers_of(const Arguments& arguments) {
    constexpr long long kWorkersMax = 4096;
    return static_cast<int>(
        std::min(parse_count("--workers", arguments.get("--workers", "0")), kWorkersMax));
}

void print_read(Context& context, const data::ReadCounts& read) {
    context.out << fmt::format("read {} documents of {} files, {}\n", with_commas(read.documents),
                               with_commas(read.files),
                               human_bytes(static_cast<std::uint64_t>(read.bytes)));
    if (read.repaired > 0) {
        context.out << fmt::format(
            "{} documents held bytes that are not UTF-8; they became U+FFFD\n",
            with_commas(read.repaired));
    }
}

Json read_json(const data::ReadCounts& read) {
    return Json::object({{"Files", read.files},
                         {"Documents", read.documents},
                         {"Bytes", read.bytes},
                         {"RepairedDocuments", read.repaired}});
}

int train_tokenizer(Context& context, const Arguments& arguments) {
    const std::string output = require_option(arguments, "--output");
    const data::TrainTokenizerOptions options{
        .input = input_of(arguments),
        .vocabulary = parse_count("--vocabulary", require_option(arguments, "--vocabulary"), 1),
        .output = output,
        .min_frequency = parse_count("--min-frequency", arguments.get("--min-frequency", "0")),
        .workers = workers_of(arguments)};
    data::TrainTokenizerResult result;
    {
        StageLine stages(context);
        result = data::train_tokenizer(options, context.clock,
                                       [&](const data::DataProgress& p) { stages.show(p); });
    }
    if (arguments.has("--json")) {
        print_json(context, Json::object({{"Read", read_json(result.read)},
                                          {"Vocabulary", result.vocabulary},
                                          {"Merges", result.merges},
                                          {"Seconds", result.seconds}}));
        return 0;
    }
    print_read(context, result.read);
    context.out << fmt::format("{}: {} words, {} merges, in {:.1f} s\n", output,
                               with_commas(result.vocabulary), with_commas(result.merges),
                               result.seconds);
    return 0;
}

int tokenize(Context& context, const Arguments& arguments) {
    const std::string output = require_option(arguments, "--output");
    const data::TokenizeOptions options{.input = input_of(arguments),
                                        .tokenizer = require_option(arguments, "--tokenizer"),
                                        .output = output,
                                        .validation_fraction = fraction_of(arguments),
                                        .workers = workers_of(arguments)};
    data::TokenizeResult result;
    {
        StageLine stages(context);
        result = data::tokenize(options, context.clock,
                                [&](const data::DataProgress& p) { stages.show(p); });
    }
    if (arguments.has("--json")) {
        print_json(context, Json::object({{"Read", read_json(result.read)},
                                          {"TrainDocuments", result.train_documents},
                                          {"TrainTokens", result.train_tokens},
                                          {"ValidationDocuments", result.validation_documents},
                                          {"ValidationTokens", result.validation_tokens},
                                          {"Vocabulary", result.vocabulary},
                                          {"Seconds", result.seconds}}));
        return 0;
    }
    print_read(context, result.read);
    const auto shard = [&](const char* name, std::int64_t documents, std::int64_t tokens) {
        context.out << fmt::format("{}/{}: {} tokens of {} documents\n", output, name,
                                   with_commas(tokens), with_commas(documents));
    };
    shard("train", result.train_documents, result.train_tokens);
    if (options.validation_fraction > 0) {
        shard("validation", result.validation_documents, result.validation_tokens);
    }
    return 0;
}

int statistics(Context& context, const Arguments& arguments) {
    const data::TextStatistics found =
        data::text_statistics({.train = require_option(arguments, "--train"),
                               .validation = require_option(arguments, "--validation"),
                               .tokenizer = require_option(arguments, "--tokenizer")});
    if (arguments.has("--json")) {
        print_json(context, Json::object({{"TrainTokens", found.train_tokens},
                                          {"ValidationTokens", found.validation_tokens},
                                          {"BytesPerToken", found.bytes_per_token},
                                          {"UnigramNats", found.unigram_nats},
                                          {"BigramNats", found.bigram_nats},
                                          {"GzipNats", found.gzip_nats}}));
        return 0;
    }
    context.out << fmt::format("{} tokens of validation text, {:.2f} bytes each; to predict one:\n",
                               with_commas(found.validation_tokens), found.bytes_per_token)
                << fmt::format("word frequencies {:.2f} nats per token\n", found.unigram_nats)
                << fmt::format("word pairs       {:.2f} nats per token\n", found.bigram_nats)
                << fmt::format("gzip -9          {:.2f} nats per token\n", found.gzip_nats);
    return 0;
}

std::vector<OptionShape> input_options() {
    return {
        {.name = "--input",
         .value = "<path>",
         .help = "A file, or a directory of them: text, .jsonl, or either with .gz. May be given "
                 "more than once.",
         .may_repeat = true},
        {.name = "--files-from",
         .value = "<file>",
         .help = "A file that names input files, one a line."},
        {.name = "--text-field",
         .value = "<name>",
         .help = "The member of a JSON line that holds the text. Default: text."},
        {.name = "--workers",
         .value = "<count>",
         .help = "Threads. Default: one a processor. The result is the same for any number."},
        json_option()};
}

std::vector<OptionShape> with_input(std::vector<OptionShape> options) {
    for (const OptionShape& option : input_options()) options.push_back(option);
    return options;
}

}  // namespace

std::vector<Command> data_commands() {
    return {
        {.shape = {.name = "gruca data tokenizer",
                   .summary = "Trains a byte-level BPE tokenizer on text.",
                   .options = with_input({{.name = "--vocabulary",
                                           .value = "<count>",
                                           .help = "How many words it knows at the end."},
                                          {.name = "--output",
                                           .value = "<file>",
                                           .help = "The tokenizer.json to write."},
                                          {.name = "--min-frequency",
                                           .value = "<count>",
                                           .help = "Pairs seen less often are not merged. Default: "
                                                   "0."}}),
                   .example = "gruca data tokenizer --vocabulary 8192 --output tokenizer.json "
                              "--input ./text"},
         .run = train_tokenizer},
        {.shape =
             {.name = "gruca data tokenize",
              .summary = "Turns text into token shards: train/ and validation/, each a "
                         "Megatron-compatible pair of .bin and .idx.",
              .options = with_input(
                  {{.name = "--tokenizer", .value = "<file>", .help = "A tokenizer.json."},
                   {.name = "--output", .value = "<directory>", .help = "Where the shards go."},
                   {.name = "--validation-fraction",
                    .value = "<fraction>",
                    .help = "Share of the documents kept for validation. "
                            "Default: 0."}}),
              .example = "gruca data tokenize --tokenizer tokenizer.json --output ./data "
                         "--validation-fraction 0.02 --input ./text"},
         .run = tokenize},
        {.shape =
             {.name = "gruca data statistics",
              .summary = "Says how well word frequencies, word pairs and gzip predict a "
                         "validation text: what a model's validation loss is to be compared "
                         "with.",
              .options =
                  {{.name = "--train", .value = "<directory>", .help = "Training shards."},
                   {.name = "--validation", .value = "<directory>", .help = "Validation shards."},
                   {.name = "--tokenizer", .value = "<file>", .help = "Their tokenizer.json."},
                   json_option()},
              .example = "gruca data statistics --train data/train --validation "
                         "data/validation --tokenizer tokenizer.json"},
         .run = statistics},
    };
}

}  // namespace gruca::cli
