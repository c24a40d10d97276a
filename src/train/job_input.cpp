#include "train/job_input.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "data/tokenizer.h"
#include "store/object_store.h"

namespace gruca::train {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kTokenizerBytesMax = 256u << 20;

Json read_config(const fs::path& base_dir, const char* file, const Json& when_absent) {
    const fs::path path = base_dir / "input" / "config" / file;
    if (!fs::exists(path)) return when_absent;
    try {
        return Json::parse(read_file(path));
    } catch (Error& error) {
        error.add_context("reading " + path.string());
        throw;
    }
}

void read_hosts(const fs::path& base_dir, JobInput& input) {
    const Json alone =
        Json::object({{"current_host", "localhost"}, {"hosts", Json::array({"localhost"})}});
    const Json config = read_config(base_dir, "resourceconfig.json", alone);
    std::string own;
    try {
        for (const Json& host : config.at("hosts").as_array()) {
            input.hosts.push_back(host.as_string());
        }
        own = config.at("current_host").as_string();
    } catch (Error& error) {
        error.add_context("reading resourceconfig.json");
        throw;
    }
    const auto found = std::find(input.hosts.begin(), input.hosts.end(), own);
    if (found == input.hosts.end()) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("resourceconfig.json does not list its current_host: {}", own));
    }
    input.rank = static_cast<int>(found - input.hosts.begin());
}

void read_tokenizer(JobInput& input) {
    for (const char* channel : {"tokenizer", "train"}) {
        const fs::path path = input.channel(channel) / "tokenizer.json";
        if (!fs::exists(path)) continue;
        input.tokenizer_json = read_file(path, kTokenizerBytesMax);
        return;
    }
}

std::int64_t vocabulary_size(const JobInput& input, const std::optional<TokenizerFacts>& facts) {
    const std::int64_t wanted = input.trainer.vocabulary_size;
    if (!facts && wanted == 0) {
        throw Error(ErrorCode::invalid_argument,
                    "how many tokens there are is unknown: give a channel tokenizer with a "
                    "tokenizer.json, or the hyperparameter vocabulary_size");
    }
    if (wanted == 0) return facts->vocabulary_size;
    if (facts && wanted < facts->vocabulary_size) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("vocabulary_size is smaller than the tokenizer's: {} and {}",
                                wanted, facts->vocabulary_size));
    }
    return wanted;
}

std::string local_checkpoint_uri(const fs::path& base_dir) {
    const Json config = read_config(base_dir, "checkpointconfig.json", Json());
    if (config.is_null()) return "";
    const std::string path = config.get_string("LocalPath", "/opt/ml/checkpoints");
    return store::file_uri(path == "/opt/ml/checkpoints" ? base_dir / "checkpoints"
                                                         : fs::path(path));
}

}  // namespace

TokenizerFacts tokenizer_facts(const std::string& tokenizer_json) {
    const Json json = Json::parse(tokenizer_json);
    TokenizerFacts facts{.vocabulary_size = 0, .end_of_text = {}};
    const auto see = [&](std::string_view token, std::int64_t id) {
        if (id < 0 || id >= data::kVocabularyMax) {
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("the id of a token is not in 0..{}: {} of {}",
                                    data::kVocabularyMax - 1, id, token));
        }
        facts.vocabulary_size = std::max(facts.vocabulary_size, id + 1);
        if (token == data::kEndOfText) facts.end_of_text = id;
    };
    for (const auto& [token, id] : json.at("model").at("vocab").as_object()) {
        see(token, id.as_int());
    }
    if (const Json* added = json.find("added_tokens")) {
        for (const Json& one : added->as_array()) {
            see(one.at("content").as_string(), one.at("id").as_int());
        }
    }
    return facts;
}

JobInput read_job_input(const fs::path& base_dir, std::string checkpoint_uri) {
    JobInput input{.base_dir = base_dir, .trainer = {}, .model = {}, .hosts = {}};
    read_hosts(base_dir, input);
    input.trainer =
        spec::read_hyperparameters(read_config(base_dir, "hyperparameters.json", Json::object()));
    spec::require_valid(input.trainer, input.ranks());
    if (!fs::is_directory(input.channel("train"))) {
        throw Error(ErrorCode::invalid_argument,
                    "the job has no channel named train: add one whose prefix holds token shards "
                    "(.bin and .idx), as gruca data tokenize makes them");
    }
    read_tokenizer(input);
    std::optional<TokenizerFacts> facts;
    if (!input.tokenizer_json.empty()) {
        try {
            facts = tokenizer_facts(input.tokenizer_json);
        } catch (Error& error) {
            error.add_context("reading tokenizer.json");
            throw;
        }
        input.end_of_text = facts->end_of_text;
    }
    input.model = spec::model_config(input.trainer, vocabulary_size(input, facts));
    input.has_validation = fs::is_directory(input.channel("validation"));
    input.checkpoint_uri =
        checkpoint_uri.empty() ? local_checkpoint_uri(base_dir) : std::move(checkpoint_uri);
    return input;
}

}  // namespace gruca::train
