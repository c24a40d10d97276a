// Commands as a person types them, against canned answers of the API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>

#include "base/process_id.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/fake_world.h"
#include "spec/event.h"

namespace gruca::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class Commands : public testing::Test {
  protected:
    FakeWorld world;
};

TEST_F(Commands, the_program_explains_itself_at_every_level) {
    const std::string overview = world.printed({});
    EXPECT_EQ(world.printed({"--help"}), overview);
    for (const auto list : {&service_commands, &job_commands, &store_commands, &data_commands,
                            &model_commands, &doctor_commands}) {
        for (const Command& command : list()) {
            EXPECT_THAT(overview, HasSubstr(command.shape.name));
            const std::string help = world.printed([&] {
                std::vector<std::string> words = split(command.shape.name.substr(6), ' ');
                words.push_back("--help");
                return words;
            }());
            EXPECT_THAT(help, AllOf(StartsWith("Usage: " + command.shape.name + " [options]"),
                                    HasSubstr("\nExample:\n  gruca ")));
            EXPECT_EQ(help, help_text(command.shape));
        }
    }
    EXPECT_THAT(world.printed({"job"}),
                AllOf(HasSubstr("gruca job stop"), Not(HasSubstr("gruca store"))));
}

TEST(CommandLine, the_reference_page_is_what_the_commands_say) {
    const std::string path = GRUCA_SOURCE_DIR "/docs/reference/command-line.md";
    if (std::getenv("GRUCA_WRITE_DOCS")) write_file_atomic(path, command_line_page());
    EXPECT_EQ(read_file(path), command_line_page()) << "write it anew: ./dev docs";
}

TEST_F(Commands, a_mistyped_command_is_refused_with_the_one_meant) {
    EXPECT_THAT(world.printed({"job", "lsit"}), HasSubstr("did you mean gruca job list?"));
    EXPECT_THAT(world.printed({"frobnicate"}), StartsWith("exit code 2:"));
}

TEST_F(Commands, without_a_service_everything_says_how_to_start_one) {
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"job", "list"}, {"job", "logs", "x"}, {"service", "status"}}) {
        EXPECT_THAT(world.printed(words),
                    AllOf(StartsWith("exit code 8:"), HasSubstr("gruca service start")));
    }
    Subprocess gone({.argv = {"true"}});
    gone.wait();
    world.run_service(gone.pid());  // A service that was killed.
    EXPECT_THAT(world.printed({"job", "list"}), HasSubstr("gruca service start"));
}

TEST_F(Commands, the_key_is_the_one_of_the_data_directory) {
    world.run_service();
    world.answers["ListTrainingJobs"] = [](const Json&) {
        return Json::object({{"TrainingJobSummaries", Json::array()}});
    };
    world.printed({"job", "list"});
    EXPECT_EQ(world.connected_to->credentials.access_key, "AKID");
    EXPECT_EQ(world.connected_to->credentials.secret_key, "secret");
    EXPECT_EQ(world.connected_to->endpoint, "http://127.0.0.1:7717");
}

class JobCommands : public Commands {
  protected:
    void SetUp() override {
        world.run_service();
        world.answers["CreateTrainingJob"] = [](const Json& request) {
            return Json::object(
                {{"TrainingJobArn", "arn:" + request.at("TrainingJobName").as_string()}});
        };
        world.answers["DescribeTrainingJob"] = [this](const Json&) { return description; };
        world.answers["DescribeNodes"] = [](const Json&) {
            return Json::parse(R"({"Nodes": [{"Host": "algo-1", "Address": "127.64.0.1",
                "Phase": "uploaded", "Ended": true, "ExitCode": 0}]})");
        };
        world.answers["DescribeLogStreams"] = [](const Json&) { return Json::object(); };
        world.answers["StopTrainingJob"] = [](const Json&) { return Json::object(); };
    }

    const Json& request() const { return world.calls.at(0).second; }

    Json description = Json::parse(R"({
        "TrainingJobName": "hello", "TrainingJobArn": "arn:hello",
        "TrainingJobStatus": "Completed", "SecondaryStatus": "Completed",
        "AlgorithmSpecification": {"TrainingImage": "gruca/host"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 2},
        "CreationTime": 1796117400.5, "BillableTimeInSeconds": 90,
        "ModelArtifacts": {"S3ModelArtifacts": "s3://out/hello/output/model.tar.gz"},
        "SecondaryStatusTransitions": [
            {"Status": "Starting", "StartTime": 1796117400.5, "EndTime": 1796117490,
             "StatusMessage": "Starting it"},
            {"Status": "Completed", "StartTime": 1796117490, "StatusMessage": "Done"}]})");
};

TEST_F(JobCommands, create_makes_a_request_of_flags) {
    EXPECT_THAT(
        world.printed({"job",
                       "create",
                       "--name",
                       "hello",
                       "--image",
                       "gruca/host",
                       "--instances",
                       "2",
                       "--hyperparameter",
                       "a=1",
                       "--hyperparameter",
                       "b=x=y",
                       "--channel",
                       "train=s3://in/t/",
                       "--output",
                       "s3://out",
                       "--checkpoint",
                       "s3://ck",
                       "--max-runtime",
                       "1h",
                       "--env",
                       "K=V",
                       "--",
                       "sh",
                       "-c",
                       "echo --name"}),
        AllOf(HasSubstr("created hello, arn:hello"), HasSubstr("gruca job logs --follow hello")));
    EXPECT_EQ(request(), Json::parse(R"({
        "RoleArn": "arn:aws:iam::000000000000:role/gruca",
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "TrainingJobName": "hello",
        "AlgorithmSpecification": {"TrainingImage": "gruca/host", "TrainingInputMode": "File",
            "ContainerEntrypoint": ["sh"], "ContainerArguments": ["-c", "echo --name"]},
        "HyperParameters": {"a": "1", "b": "x=y"},
        "Environment": {"K": "V"},
        "InputDataConfig": [{"ChannelName": "train", "DataSource": {"S3DataSource": {
            "S3DataType": "S3Prefix", "S3Uri": "s3://in/t/",
            "S3DataDistributionType": "FullyReplicated"}}}],
        "OutputDataConfig": {"S3OutputPath": "s3://out"},
        "CheckpointConfig": {"S3Uri": "s3://ck"}})"));
}

TEST_F(JobCommands, create_takes_a_file_or_standard_input_and_flags_amend_it) {
    const std::string body = R"({"TrainingJobName":"filed","HyperParameters":{"a":"1"},"X":[1]})";
    write_file_atomic(world.home.path() / "job.json", body);
    const std::string file = (world.home.path() / "job.json").string();
    world.printed({"job", "create", "--cli-input-json", file});
    EXPECT_EQ(request(), Json::parse(body));
    world.calls.clear();
    world.in.str(body);
    world.printed(
        {"job", "create", "--cli-input-json", "-", "--name", "other", "--hyperparameter", "a=2"});
    EXPECT_EQ(request(), Json::parse(R"({"TrainingJobName":"other","HyperParameters":{"a":"2"},
                                         "X":[1]})"));
    world.calls.clear();
    EXPECT_THAT(world.printed({"job", "create", "--cli-input-json", "file://" + file}),
                HasSubstr("created filed"));
    EXPECT_THAT(world.printed({"job", "create", "--cli-input-json", "/nowhere"}),
                AllOf(StartsWith("exit code 3"), HasSubstr("/nowhere")));
}

TEST_F(JobCommands, create_without_a_name_or_with_a_bad_number_calls_nothing) {
    EXPECT_THAT(world.printed({"job", "create", "--image", "gruca/host"}), HasSubstr("--name"));
    EXPECT_THAT(world.printed({"job", "create", "--name", "a", "--instances", "two"}),
                HasSubstr("--instances"));
    EXPECT_THAT(world.calls, IsEmpty());
}

TEST_F(JobCommands, what_the_api_refuses_is_said_in_its_words) {
    world.answers["CreateTrainingJob"] = [](const Json&) -> Json {
        throw Error(ErrorCode::already_exists, "ResourceInUse: names must be unique");
    };
    EXPECT_EQ(world.printed({"job", "create", "--name", "a"}),
              "exit code 4: gruca: ResourceInUse: names must be unique\n");
}

TEST_F(JobCommands, json_is_the_answer_of_the_api) {
    EXPECT_EQ(Json::parse(world.printed({"job", "describe", "hello", "--json"})), description);
    EXPECT_EQ(Json::parse(world.printed({"job", "create", "--name", "a", "--json"})),
              Json::parse(R"({"TrainingJobArn":"arn:a"})"));
    EXPECT_EQ(Json::parse(world.printed({"job", "wait", "hello", "--json"})), description);
    EXPECT_EQ(Json::parse(world.printed({"job", "stop", "hello", "--json"})), Json::object());
}

TEST_F(JobCommands, describe_says_how_the_job_stands_and_how_it_came_there) {
    world.answers["DescribeLogStreams"] = [](const Json&) {
        return Json::parse(R"({"logStreams": [{"logStreamName": "hello/algo-1-1796117400"}]})");
    };
    world.answers["GetLogEvents"] = [](const Json& asked) {
        EXPECT_FALSE(asked.at("startFromHead").as_bool());  // A log may be a gigabyte.
        const std::string event =
            spec::event_line(spec::StepEvent{.step = 7, .steps = 9, .loss = 2.5});
        return Json::object({{"events", Json::array({Json::object({{"message", event}})})}});
    };
    EXPECT_EQ(world.printed({"job", "describe", "hello"}),
              R"(hello is Completed; billable seconds: 90
Model: s3://out/hello/output/model.tar.gz
  fetch it: gruca store cp s3://out/hello/output/model.tar.gz .
ARN: arn:hello
Image: gruca/host
Instances: 2 x ml.m5.large
Created: 2026-12-01T09:30:00.500Z
Timeline:
  09:30:00  queued        1 min 30 s  ########################
  09:31:30  Completed: Done
Nodes:
  algo-1    127.64.0.1       uploaded, exit code 0
Training: step 7/9  loss 2.5000
)");
}

TEST_F(JobCommands, list_asks_page_after_page_up_to_the_maximum) {
    world.answers["ListTrainingJobs"] = [](const Json& asked) {
        const bool first = asked.find("NextToken") == nullptr;
        Json page = Json::object();
        page.set("TrainingJobSummaries",
                 Json::array({Json::object({{"TrainingJobName", first ? "newer" : "older-job"},
                                            {"TrainingJobStatus", "InProgress"},
                                            {"CreationTime", 1796117400.5}})}));
        if (first) page.set("NextToken", "t");
        return page;
    };
    EXPECT_EQ(world.printed({"job", "list", "--status", "InProgress"}),
              "NAME       STATUS      CREATED\n"
              "newer      InProgress  2026-12-01 09:30:00\n"
              "older-job  InProgress  2026-12-01 09:30:00\n");
    EXPECT_EQ(request().get_string("StatusEquals"), "InProgress");
    EXPECT_EQ(Json::parse(world.printed({"job", "list", "--json", "--max", "1"}))
                  .at("TrainingJobSummaries")
                  .as_array()
                  .size(),
              1u);
}

TEST_F(JobCommands, wait_ends_with_the_job_and_tells_how_by_its_exit_code) {
    const Json over = description;
    for (const auto& [status, code] : std::vector<std::pair<std::string, int>>{
             {"Completed", 0}, {"Stopped", 0}, {"Failed", kExitJobFailed}}) {
        description = over;
        description.set("TrainingJobStatus", "InProgress");
        world.on_pause = [&, end = status] { description.set("TrainingJobStatus", end); };
        EXPECT_EQ(world.run({"job", "wait", "hello"}), code) << status;
    }
    description.set("TrainingJobStatus", "InProgress");
    world.on_pause = nullptr;
    EXPECT_THAT(world.printed({"job", "wait", "hello", "--timeout", "1m"}),
                StartsWith("exit code 9: gruca: the job is still InProgress after 1 min 00 s"));
}

TEST_F(JobCommands, stop_returns_at_once_or_waits) {
    EXPECT_EQ(world.printed({"job", "stop", "hello"}), "stopping hello\n");
    EXPECT_EQ(world.pauses, 0);
    description.set("TrainingJobStatus", "Stopping");
    world.on_pause = [&] { description.set("TrainingJobStatus", "Stopped"); };
    EXPECT_THAT(world.printed({"job", "stop", "hello", "--wait", "5m"}),
                HasSubstr("hello is Stopped"));
}

TEST_F(JobCommands, ctrl_c_ends_the_waiting_and_not_the_job) {
    description.set("TrainingJobStatus", "InProgress");
    world.on_pause = [&] { world.is_interrupted = true; };
    EXPECT_EQ(world.run({"job", "wait", "hello"}), kExitInterrupted);
    EXPECT_THAT(world.err.str(), HasSubstr("the job goes on"));
    for (const auto& [operation, asked] : world.calls) EXPECT_NE(operation, "StopTrainingJob");
}

TEST_F(Commands, generate_becomes_the_trainer_with_the_same_words) {
    world.run({"model", "generate", "--model", "m", "--prompt", "a b", "-x"});
    EXPECT_THAT(world.became, ElementsAre((world.program_dir.path() / "gruca-train").string(),
                                          "generate", "--model", "m", "--prompt", "a b", "-x"));
}

class DataCommands : public Commands {
  protected:
    void SetUp() override {
        for (int i = 0; i < 20; ++i) {
            write_file_atomic(
                files.path() / (std::to_string(i) + ".txt"),
                "the cat sat on the mat, and the cat sat on mat " + std::to_string(i));
        }
        write_file_atomic(files.path() / "list",
                          path("1.txt") + "\n\n" + path("2.txt") + "\n" + path("3.txt") + "\n");
    }
    std::string path(const std::string& name) const { return (files.path() / name).string(); }

    TempDir files;
};

TEST_F(DataCommands, text_becomes_a_tokenizer_shards_and_figures) {
    EXPECT_THAT(world.printed({"data", "tokenizer", "--vocabulary", "270", "--output",
                               path("tokenizer.json"), "--files-from", path("list")}),
                AllOf(HasSubstr("read 3 documents of 3 files"), HasSubstr("270 words, 13 merges")));
    const Json result = Json::parse(world.printed(
        {"data", "tokenize", "--tokenizer", path("tokenizer.json"), "--output", path("shards"),
         "--validation-fraction", "0.25", "--input", files.path().string(), "--json"}));
    EXPECT_EQ(result.at("Read").get_int("Documents"), 20);
    EXPECT_EQ(result.get_int("TrainDocuments") + result.get_int("ValidationDocuments"), 20);
    EXPECT_TRUE(std::filesystem::exists(files.path() / "shards/train/tokens.bin"));
    EXPECT_THAT(
        world.printed({"data", "statistics", "--train", path("shards/train"), "--validation",
                       path("shards/validation"), "--tokenizer", path("tokenizer.json")}),
        AllOf(HasSubstr("word frequencies"), HasSubstr("nats per token")));
}

TEST_F(DataCommands, what_is_missing_or_wrong_is_named) {
    EXPECT_THAT(world.printed({"data", "tokenizer", "--vocabulary", "270", "--input", "x"}),
                HasSubstr("--output"));
    EXPECT_THAT(world.printed({"data", "tokenizer", "--vocabulary", "270", "--output", "x"}),
                AllOf(HasSubstr("--input"), HasSubstr("--files-from")));
    EXPECT_THAT(world.printed({"data", "tokenizer", "--vocabulary", "9", "--output", path("x"),
                               "--input", path("1.txt")}),
                StartsWith("exit code 2"));
    EXPECT_THAT(world.printed({"data", "tokenize", "--tokenizer", path("none"), "--output",
                               path("y"), "--input", path("1.txt")}),
                StartsWith("exit code 3"));
    EXPECT_THAT(world.printed({"data", "tokenize", "--validation-fraction", "2", "--tokenizer",
                               path("none"), "--output", path("y"), "--input", path("1.txt")}),
                HasSubstr("--validation-fraction"));
}

// A program in the place of gruca-service: announces itself and waits for its end.
class ServiceCommands : public Commands {
  protected:
    void install(const std::string& script) {
        const auto file = world.program_dir.path() / "gruca-service";
        write_file_atomic(file, "#!/bin/sh\n" + script, {.mode = 0755});
        world.answers["ListTrainingJobs"] = [this](const Json& asked) {
            Json list = Json::array();
            if (asked.get_string("StatusEquals") == "InProgress") {
                for (const std::string& job : jobs) {
                    list.push(Json::object({{"TrainingJobName", job}}));
                }
            }
            return Json::object({{"TrainingJobSummaries", list}});
        };
        world.answers["DescribeNodes"] = [](const Json&) {
            return Json::parse(R"({"Nodes": [{"Host": "algo-1", "Address": "127.64.0.1",
                "Phase": "uploaded", "Ended": true, "ExitCode": 0}]})");
        };
        world.answers["DescribeLogStreams"] = [](const Json&) { return Json::object(); };
        world.answers["StopTrainingJob"] = [this](const Json& asked) {
            stopped.push_back(asked.at("TrainingJobName").as_string());
            return Json::object();
        };
    }

    std::vector<std::string> jobs;
    std::vector<std::string> stopped;
    // $2 is the data directory. Written in two steps, as a reader must never see half of it.
    const std::string announce =
        "echo \"$@\" > $2/words\n"
        "printf '[gruca]\\naws_access_key_id=A\\naws_secret_access_key=S\\n' > $2/credentials\n"
        "echo \"{\\\"pid\\\": $$, \\\"endpoint\\\": \\\"http://127.0.0.1:1\\\"}\" > $2/new\n"
        "mv $2/new $2/service.json\n";
    const std::string wait = "exec sleep 1000\n";
};

TEST_F(ServiceCommands, start_runs_the_service_in_the_background_and_stop_ends_it) {
    install(announce + wait);
    EXPECT_THAT(world.printed({"service", "start", "--port", "0", "--slots", "8"}),
                AllOf(HasSubstr("http://127.0.0.1:1"), HasSubstr("AWS_PROFILE=gruca")));
    EXPECT_EQ(read_file(world.data_dir() / "words"),
              "--data-dir " + world.data_dir().string() + " --port 0 --slots 8\n");
    struct stat facts {};
    ASSERT_EQ(::stat(world.data_dir().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0700u);
    EXPECT_THAT(world.printed({"service", "start"}), HasSubstr("already running"));
    EXPECT_EQ(Json::parse(world.printed({"service", "status", "--json"})).get_string("endpoint"),
              "http://127.0.0.1:1");
    const pid_t pid = world.connected_to->pid;
    EXPECT_THAT(world.printed({"service", "stop"}), HasSubstr("ended"));
    EXPECT_FALSE(process_id_of(pid).has_value());
    EXPECT_THAT(world.printed({"service", "status"}), StartsWith("exit code 8"));
    EXPECT_THAT(world.printed({"service", "stop"}), HasSubstr("not running"));
}

TEST_F(ServiceCommands, a_service_that_ends_at_once_is_reported_with_what_it_said) {
    install("echo 'the port is taken' >&2\nexit 8\n");
    EXPECT_THAT(world.printed({"service", "start"}),
                AllOf(StartsWith("exit code 8"), HasSubstr("the port is taken")));
}

TEST_F(ServiceCommands, an_interrupted_start_leaves_no_service) {
    install("echo $$ > $2/pid\nexec sleep 1000\n");
    world.is_interrupted = true;
    EXPECT_THAT(world.printed({"service", "start"}), HasSubstr("interrupted"));
    const auto file = world.data_dir() / "pid";
    if (!std::filesystem::exists(file)) return;  // It was ended before it did anything.
    EXPECT_FALSE(process_id_of(static_cast<pid_t>(parse_int(trim(read_file(file))).value())));
}

TEST_F(ServiceCommands, another_process_with_the_id_of_a_killed_service_is_not_the_service) {
    Subprocess other({.argv = {"sleep", "1000"}});
    install(announce + wait);
    world.run_service(other.pid());
    Json facts = Json::parse(read_file(world.data_dir() / "service.json"));
    facts.set("started", process_id_of(other.pid())->start + 1);
    write_file_atomic(world.data_dir() / "service.json", facts.dump());
    EXPECT_THAT(world.printed({"service", "stop"}), HasSubstr("not running"));
    EXPECT_THAT(world.printed({"service", "start"}), HasSubstr("the service is running"));
    EXPECT_THAT(world.printed({"service", "stop"}), HasSubstr("ended"));
    EXPECT_TRUE(process_id_of(other.pid()).has_value());
}

TEST_F(ServiceCommands, stop_is_refused_while_jobs_run_and_names_them) {
    Subprocess service({.argv = {"sleep", "1000"}});
    install("");
    world.run_service(service.pid());
    jobs = {"one", "two"};
    EXPECT_THAT(world.printed({"service", "stop"}),
                AllOf(StartsWith("exit code 5"), HasSubstr("one, two"), HasSubstr("--stop-jobs")));
    EXPECT_TRUE(process_id_of(service.pid()).has_value());
    EXPECT_THAT(stopped, IsEmpty());
    world.on_pause = [&] { jobs.clear(); };
    EXPECT_THAT(world.printed({"service", "stop", "--stop-jobs"}), HasSubstr("ended"));
    EXPECT_THAT(stopped, ElementsAre("one", "two"));
    EXPECT_EQ(service.wait().signal, SIGTERM);
}

TEST_F(ServiceCommands, a_job_that_does_not_stop_keeps_the_service_alive) {
    Subprocess service({.argv = {"sleep", "1000"}});
    install("");
    world.run_service(service.pid());
    jobs = {"stubborn"};
    EXPECT_THAT(world.printed({"service", "stop", "--stop-jobs", "--timeout", "10s"}),
                AllOf(StartsWith("exit code 9"), HasSubstr("stubborn")));
    EXPECT_TRUE(process_id_of(service.pid()).has_value());
}

}  // namespace
}  // namespace gruca::cli
