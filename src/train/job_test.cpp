// Whole jobs: the files below a base directory in, a model and an exit code out. Two instances are
// two threads that meet over the loopback network.
#include "train/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_dir.h"
#include "data/token_shard.h"
#include "model/model_directory.h"
#include "train/training_fixture.h"

namespace gruca::train {
namespace {

using testing::events_in;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kTokenizer =
    R"({"added_tokens":[{"id":12,"content":"<|endoftext|>"}],"model":{"type":"BPE","vocab":)"
    R"({"a":0,"b":1,"c":2,"d":3,"e":4,"f":5,"g":6,"h":7,"i":8,"j":9,"k":10,"l":11},"merges":[]}})";

struct Outcome {
    int exit_code;
    std::string output;
};

// One instance's tree below a directory of its own.
class Instance {
  public:
    explicit Instance(std::vector<std::string> hosts = {"localhost"}, std::size_t rank = 0) {
        Json list = Json::array();
        for (const std::string& host : hosts) list.push(host);
        put("input/config/resourceconfig.json",
            Json::object({{"current_host", hosts[rank]}, {"hosts", list}}).dump());
        hyperparameters({});
        put("input/data/tokenizer/tokenizer.json", kTokenizer);
        shard("train", 200, 12);
        shard("validation", 40, 12);
    }

    fs::path base() const { return scratch_.path(); }
    void put(const std::string& path, const std::string& content) {
        fs::create_directories((base() / path).parent_path());
        write_file_atomic(base() / path, content);
    }
    void hyperparameters(std::initializer_list<Json::Member> more) {
        Json all = Json::object({{"layers", "1"},
                                 {"width", "8"},
                                 {"heads", "2"},
                                 {"context_length", "4"},
                                 {"max_steps", "4"},
                                 {"global_batch_size", "4"},
                                 {"log_interval", "1"},
                                 {"checkpoint_interval", "2"},
                                 {"kernels", "\"reference\""}});
        for (const auto& [key, value] : more) all.set(key, value);
        put("input/config/hyperparameters.json", all.dump());
    }
    void shard(const std::string& channel, std::int32_t tokens, std::int32_t ids) {
        fs::create_directories(base() / "input/data" / channel);
        data::TokenShardWriter writer(base() / "input/data" / channel / "text",
                                      data::TokenType::uint16);
        std::vector<std::int32_t> document;
        for (std::int32_t i = 0; i < tokens; ++i) document.push_back(i * i % ids);
        writer.add_document(document);
        writer.finish();
    }
    Outcome run(bool stop = false) {
        std::ostringstream out;
        const std::atomic<bool> stop_asked = stop;
        const int code = run_job({.base_dir = base(),
                                  .checkpoint_uri = checkpoint_uri,
                                  .job_name = "test",
                                  .out = out,
                                  .clock = clock_,
                                  .stop_asked = stop_asked});
        return {.exit_code = code, .output = out.str()};
    }
    std::string failure() const { return read_file(base() / "output/failure"); }
    std::vector<float> weights() const {
        model::ParameterSet<float> read(model::read_model_config(base() / "model"));
        model::read_weights(base() / "model", read);
        return {read.values().begin(), read.values().end()};
    }

    std::string checkpoint_uri;

  private:
    const TempDir scratch_;
    const SystemClock clock_;
};

// Two addresses of the loopback network that only this process uses.
std::vector<std::string> two_hosts() {
    const int pid = ::getpid() % (1 << 14);
    std::vector<std::string> hosts;
    for (const int low : {1, 2}) {
        hosts.push_back(fmt::format("127.{}.{}.{}", 100 + (pid >> 8), pid & 255, low));
    }
    return hosts;
}

std::vector<Outcome> run_both(Instance& first, Instance& second, bool stop_second = false) {
    std::vector<Outcome> outcomes(2);
    {
        const std::jthread other([&] { outcomes[1] = second.run(stop_second); });
        outcomes[0] = first.run();
    }
    return outcomes;
}

TEST(Job, leaves_a_model_and_reports_from_start_to_end) {
    Instance instance;
    const Outcome outcome = instance.run();
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(events_in<spec::StartEvent>(outcome.output).at(0).tokens_per_step, 16);
    EXPECT_EQ(events_in<spec::StepEvent>(outcome.output).size(), 4u);
    EXPECT_EQ(events_in<spec::EvalEvent>(outcome.output).size(), 1u);
    EXPECT_EQ(events_in<spec::EndEvent>(outcome.output).at(0).step, 4);
    EXPECT_FALSE(fs::exists(instance.base() / "output/failure"));
    EXPECT_EQ(model::read_model_config(instance.base() / "model").vocabulary_size, 13);
    EXPECT_EQ(read_file(instance.base() / "model/tokenizer.json"), kTokenizer);
    const Json config = Json::parse(read_file(instance.base() / "model/config.json"));
    EXPECT_EQ(config.at("eos_token_id").as_int(), 12);
}

TEST(Job, two_instances_train_one_model_that_the_first_leaves) {
    const auto hosts = two_hosts();
    Instance alone, first(hosts, 0), second(hosts, 1);
    for (Instance* instance : {&alone, &first, &second}) {
        instance->hyperparameters({{"kernels", "auto"}});
    }
    ASSERT_EQ(alone.run().exit_code, 0);
    const auto outcomes = run_both(first, second);
    ASSERT_EQ(outcomes[0].exit_code, 0) << outcomes[0].output;
    ASSERT_EQ(outcomes[1].exit_code, 0) << outcomes[1].output;
    EXPECT_THAT(first.weights(),
                ::testing::Pointwise(::testing::FloatNear(1e-5f), alone.weights()));
    EXPECT_FALSE(fs::exists(second.base() / "model"));
    EXPECT_TRUE(events_in<spec::StepEvent>(outcomes[1].output).empty());
    EXPECT_EQ(events_in<spec::EndEvent>(outcomes[1].output).size(), 1u);
}

TEST(Job, asked_to_stop_it_saves_leaves_a_model_and_the_next_one_goes_on) {
    const TempDir checkpoints;
    const std::string uri = "file://" + checkpoints.path().string();
    Instance unbroken, stopped, resumed;
    ASSERT_EQ(unbroken.run().exit_code, 0);

    stopped.checkpoint_uri = resumed.checkpoint_uri = uri;
    const Outcome stop = stopped.run(true);
    EXPECT_EQ(stop.exit_code, 0);
    EXPECT_TRUE(events_in<spec::EndEvent>(stop.output).at(0).stopped);
    EXPECT_TRUE(fs::exists(stopped.base() / "model/model.safetensors"));

    const Outcome rest = resumed.run();
    EXPECT_EQ(rest.exit_code, 0);
    EXPECT_EQ(events_in<spec::ResumeEvent>(rest.output).at(0).step, 1);
    EXPECT_EQ(resumed.weights(), unbroken.weights());
}

TEST(Job, a_training_that_was_over_before_leaves_the_model_and_claims_no_loss) {
    const TempDir checkpoints;
    Instance first, again;
    first.checkpoint_uri = again.checkpoint_uri = "file://" + checkpoints.path().string();
    ASSERT_EQ(first.run().exit_code, 0);
    const Outcome outcome = again.run();
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(again.weights(), first.weights());
    EXPECT_TRUE(std::isnan(events_in<spec::EndEvent>(outcome.output).at(0).loss));
}

TEST(Job, a_stop_of_one_instance_stops_both_with_one_checkpoint) {
    const TempDir checkpoints;
    const auto hosts = two_hosts();
    Instance first(hosts, 0), second(hosts, 1);
    first.checkpoint_uri = second.checkpoint_uri = "file://" + checkpoints.path().string();
    const auto outcomes = run_both(first, second, true);
    EXPECT_EQ(outcomes[0].exit_code, 0);
    EXPECT_EQ(outcomes[1].exit_code, 0);
    EXPECT_EQ(events_in<spec::CheckpointEvent>(outcomes[0].output).at(0).step, 1);
    EXPECT_TRUE(events_in<spec::EndEvent>(outcomes[1].output).at(0).stopped);
}

TEST(Job, wrong_hyperparameters_fail_with_words_for_their_author) {
    Instance instance;
    instance.hyperparameters({{"widht", "8"}});
    const Outcome outcome = instance.run();
    EXPECT_EQ(outcome.exit_code, exit_code(ErrorCode::invalid_argument));
    EXPECT_THAT(instance.failure(), HasSubstr("width"));
    EXPECT_THAT(events_in<spec::ErrorEvent>(outcome.output).at(0).message, HasSubstr("width"));
}

TEST(Job, the_first_reason_for_a_failure_stands) {
    Instance instance;
    instance.hyperparameters({{"heads", "3"}});
    instance.put("output/failure", "the first reason");
    EXPECT_NE(instance.run().exit_code, 0);
    EXPECT_EQ(instance.failure(), "the first reason");
}

TEST(Job, a_corpus_shorter_than_a_sample_names_both_numbers) {
    Instance instance;
    instance.shard("train", 4, 12);
    EXPECT_EQ(instance.run().exit_code, exit_code(ErrorCode::invalid_argument));
    EXPECT_THAT(instance.failure(), ::testing::AllOf(HasSubstr("4"), HasSubstr("5")));
}

TEST(Job, a_token_beyond_the_vocabulary_is_named) {
    Instance instance;
    instance.shard("train", 200, 50);
    EXPECT_EQ(instance.run().exit_code, exit_code(ErrorCode::invalid_argument));
    EXPECT_THAT(instance.failure(), HasSubstr("13"));
}

TEST(Job, one_failing_instance_ends_the_other) {
    const auto hosts = two_hosts();
    Instance first(hosts, 0), second(hosts, 1);
    second.shard("train", 3, 12);  // Found out once the two have met.
    const auto outcomes = run_both(first, second);
    EXPECT_EQ(outcomes[0].exit_code, exit_code(ErrorCode::cancelled));
    EXPECT_EQ(outcomes[1].exit_code, exit_code(ErrorCode::invalid_argument));
    EXPECT_FALSE(fs::exists(first.base() / "model/model.safetensors"));
}

TEST(Job, instances_with_different_data_are_refused) {
    const auto hosts = two_hosts();
    Instance first(hosts, 0), second(hosts, 1);
    second.shard("train", 201, 12);
    const auto outcomes = run_both(first, second);
    // Both see the difference; the slower one may hear of the other's failure first.
    const int refused = exit_code(ErrorCode::invalid_argument);
    EXPECT_TRUE(outcomes[0].exit_code == refused || outcomes[1].exit_code == refused);
    for (const Instance* instance : {&first, &second}) {
        EXPECT_THAT(instance->failure(), HasSubstr("FullyReplicated"));
    }
}

TEST(Job, instances_with_shards_that_only_have_one_size_are_refused) {
    const auto hosts = two_hosts();
    Instance first(hosts, 0), second(hosts, 1);
    for (const char* ending : {".bin", ".idx"}) {
        const fs::path shard = second.base() / "input/data/train/text";
        fs::rename(shard.string() + ending, shard.string() + "-2" + ending);
    }
    run_both(first, second);
    for (const Instance* instance : {&first, &second}) {
        EXPECT_THAT(instance->failure(), HasSubstr("FullyReplicated"));
    }
}

TEST(Job, a_channel_without_shards_says_so) {
    Instance instance;
    fs::remove(instance.base() / "input/data/train/text.idx");
    fs::remove(instance.base() / "input/data/train/text.bin");
    EXPECT_EQ(instance.run().exit_code, exit_code(ErrorCode::not_found));
    EXPECT_THAT(instance.failure(), HasSubstr("train"));
}

}  // namespace
}  // namespace gruca::train
