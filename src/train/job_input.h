// train/job_input.h
//
// What the files of the container contract say, read and checked before anything is allocated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "spec/trainer.h"

namespace gruca::train {

struct JobInput {
    std::filesystem::path base_dir;
    spec::TrainerSpec trainer;
    spec::ModelConfig model;
    std::vector<std::string> hosts;  // Index = rank.
    int rank = 0;
    std::string tokenizer_json = {};  // Empty: the job has none.
    std::optional<std::int64_t> end_of_text = {};
    bool has_validation = false;
    std::string checkpoint_uri = {};  // Empty: no checkpoints.

    int ranks() const { return static_cast<int>(hosts.size()); }
    std::filesystem::path channel(const char* name) const {
        return base_dir / "input" / "data" / name;
    }
};

// Throws invalid_argument or not_found, in words for whoever wrote the job.
JobInput read_job_input(const std::filesystem::path& base_dir, std::string checkpoint_uri);

struct TokenizerFacts {
    std::int64_t vocabulary_size;  // One more than the largest id.
    std::optional<std::int64_t> end_of_text;
};
// Throws invalid_argument when `tokenizer_json` is not the content of a tokenizer.json.
TokenizerFacts tokenizer_facts(const std::string& tokenizer_json);

}  // namespace gruca::train
