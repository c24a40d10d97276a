// The container contract's files, good and bad.
#include "train/job_input.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/boundary.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_dir.h"

namespace gruca::train {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class JobFiles : public ::testing::Test {
  protected:
    void SetUp() override {
        hyperparameters({});
        fs::create_directories(base() / "input/data/train");
        put("input/data/tokenizer/tokenizer.json",
            R"({"added_tokens":[{"id":4,"content":"<|endoftext|>"}],)"
            R"("model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":3},"merges":[]}})");
    }
    fs::path base() const { return scratch_.path(); }
    void put(const std::string& path, const std::string& content) {
        fs::create_directories((base() / path).parent_path());
        write_file_atomic(base() / path, content);
    }
    void hyperparameters(std::initializer_list<Json::Member> members) {
        put("input/config/hyperparameters.json", Json::object(members).dump());
    }
    JobInput read(std::string uri = "") { return read_job_input(base(), std::move(uri)); }
    std::string refusal() {
        const auto error = run_guarded([&] { read(); });
        return error ? error->message() : "";
    }

  private:
    const TempDir scratch_;
};

TEST_F(JobFiles, the_tokenizer_says_how_many_words_there_are) {
    const JobInput input = read();
    EXPECT_EQ(input.model.vocabulary_size, 5);
    EXPECT_EQ(input.end_of_text, 4);
    EXPECT_EQ(input.rank, 0);
    EXPECT_EQ(input.ranks(), 1);
    EXPECT_FALSE(input.has_validation);
}

TEST_F(JobFiles, a_tokenizer_may_lie_beside_the_training_data) {
    fs::rename(base() / "input/data/tokenizer/tokenizer.json",
               base() / "input/data/train/tokenizer.json");
    EXPECT_EQ(read().model.vocabulary_size, 5);
}

TEST_F(JobFiles, without_a_tokenizer_the_vocabulary_must_be_said) {
    fs::remove(base() / "input/data/tokenizer/tokenizer.json");
    EXPECT_THAT(refusal(), HasSubstr("vocabulary_size"));
    hyperparameters({{"vocabulary_size", "100"}});
    EXPECT_EQ(read().model.vocabulary_size, 100);
}

TEST_F(JobFiles, a_vocabulary_may_be_larger_than_the_tokenizers_but_not_smaller) {
    hyperparameters({{"vocabulary_size", "64"}});
    EXPECT_EQ(read().model.vocabulary_size, 64);
    hyperparameters({{"vocabulary_size", "4"}});
    EXPECT_THAT(refusal(), HasSubstr("4 and 5"));
}

TEST_F(JobFiles, a_rank_is_the_place_of_its_host) {
    put("input/config/resourceconfig.json",
        R"({"current_host":"algo-2","hosts":["algo-1","algo-2"]})");
    hyperparameters({{"global_batch_size", "6"}});
    EXPECT_EQ(read().rank, 1);
    EXPECT_EQ(read().ranks(), 2);
    hyperparameters({{"global_batch_size", "7"}});
    EXPECT_THAT(refusal(), HasSubstr("6 or 8"));
    put("input/config/resourceconfig.json", R"({"current_host":"algo-3","hosts":["algo-1"]})");
    EXPECT_THAT(refusal(), HasSubstr("algo-3"));
}

TEST_F(JobFiles, a_missing_channel_and_broken_files_are_named) {
    fs::remove(base() / "input/data/train");
    EXPECT_THAT(refusal(), HasSubstr("train"));
    fs::create_directories(base() / "input/data/train");
    put("input/data/tokenizer/tokenizer.json", "{}");
    EXPECT_THAT(refusal(), HasSubstr("tokenizer.json"));
    put("input/config/hyperparameters.json", "{");
    EXPECT_THAT(refusal(), HasSubstr("hyperparameters.json"));
    put("input/config/resourceconfig.json", R"({"hosts":["algo-1"]})");
    EXPECT_THAT(refusal(), HasSubstr("resourceconfig.json"));
}

TEST_F(JobFiles, a_tokenizer_with_an_id_that_no_table_could_have_is_refused) {
    for (const char* id : {"9223372036854775807", "-1", "1000000"}) {
        put("input/data/tokenizer/tokenizer.json",
            fmt::format(R"({{"model":{{"vocab":{{"a":0,"b":{}}},"merges":[]}}}})", id));
        EXPECT_THAT(refusal(), ::testing::AllOf(HasSubstr(id), HasSubstr("tokenizer.json")));
    }
}

TEST_F(JobFiles, checkpoints_go_where_they_are_asked_to) {
    EXPECT_EQ(read().checkpoint_uri, "");
    EXPECT_EQ(read("file:///somewhere").checkpoint_uri, "file:///somewhere");
    put("input/config/checkpointconfig.json", R"({"LocalPath":"/opt/ml/checkpoints"})");
    EXPECT_EQ(read().checkpoint_uri, "file://" + (base() / "checkpoints").string());
    EXPECT_EQ(read("file:///somewhere").checkpoint_uri, "file:///somewhere");
    put("input/config/checkpointconfig.json", R"({"LocalPath":"/elsewhere"})");
    EXPECT_EQ(read().checkpoint_uri, "file:///elsewhere");
    put("input/config/checkpointconfig.json", R"({"LocalPath":"/else%41 where"})");
    EXPECT_EQ(read().checkpoint_uri, "file:///else%2541%20where");
}

}  // namespace
}  // namespace gruca::train
