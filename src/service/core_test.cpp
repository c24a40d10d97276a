// What the loop does when the database refuses: callers are told, nothing is done, and the state
// goes back to what is durable.

#include "service/core.h"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <future>

#include "base/temp_dir.h"
#include "service/service_fixture.h"
#include "store/memory_store.h"

namespace gruca::service {
namespace {

class CoreTest : public ::testing::Test {
  protected:
    CoreTest() {
        sqlite3_open(path().c_str(), &other_);
        core.start({}, [this](NodeListener listener) { return nodes.view(std::move(listener)); });
    }
    ~CoreTest() override {
        core.stop();
        sqlite3_close(other_);
    }

    std::filesystem::path path() const { return scratch.path() / "state.db"; }
    void lock_database() { ASSERT_EQ(sqlite3_exec(other_, "BEGIN IMMEDIATE", 0, 0, 0), SQLITE_OK); }
    void unlock_database() { ASSERT_EQ(sqlite3_exec(other_, "COMMIT", 0, 0, 0), SQLITE_OK); }

    control::Reply ask(control::Input input) {
        auto promise = std::make_shared<std::promise<control::Reply>>();
        core.submit(std::move(input),
                    [promise](const control::Reply& reply) { promise->set_value(reply); });
        return promise->get_future().get();
    }
    control::CreateJob create(const std::string& name) {
        return {
            .request = "",
            .spec = spec::decode_create_training_job(
                testing::RunningService::request(name),
                {.region = "us-east-1", .account = "000000000000"}),
            .tags = {},
            .credentials = {.access_key = "ASIA" + name, .secret_key = "s", .session_token = "t"},
            .seed = "0123456789abcdef"};
    }

    const TempDir scratch;
    ManualClock clock{time_from_ms(1'800'000'000'000)};
    SystemRandom random;
    testing::FakeNodes nodes;
    Database database{{.path = path(), .busy_timeout = std::chrono::milliseconds(0)}};
    KeyRing keys{{}};
    LogStore logs{scratch.path() / "logs"};
    store::MemoryStore store;
    JobBoard jobs{database};
    Core core{{.database = database,
               .keys = keys,
               .jobs = jobs,
               .logs = logs,
               .store = store,
               .clock = clock,
               .random = random},
              {}};
    sqlite3* other_ = nullptr;
};

TEST_F(CoreTest, a_command_that_cannot_be_made_durable_has_not_happened) {
    lock_database();
    EXPECT_EQ(ask(create("job")).error, ErrorCode::unavailable);
    EXPECT_EQ(jobs.find("job"), nullptr);
    EXPECT_FALSE(keys.find("ASIAjob"));
    unlock_database();
    EXPECT_FALSE(ask(create("job")).error);
    EXPECT_NE(jobs.find("job"), nullptr);
    EXPECT_TRUE(keys.find("ASIAjob"));
    EXPECT_EQ(jobs.find("job")->number, 1);
}

TEST_F(CoreTest, the_loss_of_a_node_is_not_forgotten_when_it_could_not_be_written) {
    ASSERT_FALSE(ask(create("job")).error);
    const spec::NodeConfig node = nodes.launched("job-algo-1");
    lock_database();
    nodes.end(node.node_id, "its agent was killed");
    EXPECT_EQ(ask(create("other")).error, ErrorCode::unavailable);
    unlock_database();
    while (!jobs.find("job")->is_terminal()) core.nudge();
    EXPECT_THAT(jobs.find("job")->failure_reason, ::testing::HasSubstr("killed"));
}

TEST_F(CoreTest, a_poll_hears_nothing_that_is_not_durable) {
    ASSERT_FALSE(ask(create("job")).error);
    const spec::NodeConfig node = nodes.launched("job-algo-1");
    lock_database();
    EXPECT_EQ(ask(control::StopJob{.request = "", .name = "job"}).error, ErrorCode::unavailable);
    std::promise<spec::NodeOrder> promise;
    core.poll({.node_id = node.node_id, .seen_version = 0, .on_order = [&](const auto& order) {
                   promise.set_value(order);
               }});
    EXPECT_EQ(promise.get_future().get().stop, spec::StopOrder::none);
    unlock_database();
}

TEST_F(CoreTest, jobs_and_their_inputs_are_written_together) {
    ASSERT_FALSE(ask(create("job")).error);
    const auto inputs = database.last_inputs(10);
    ASSERT_FALSE(inputs.empty());
    const control::Input first = control::input_from_json(Json::parse(inputs[0].json));
    ASSERT_TRUE(std::holds_alternative<control::CreateJob>(first));
    EXPECT_EQ(std::get<control::CreateJob>(first).spec.name, "job");
    EXPECT_EQ(ask(create("job")).error, ErrorCode::already_exists);
}

TEST_F(CoreTest, a_job_that_is_over_is_still_known_to_commands) {
    ASSERT_FALSE(ask(create("job")).error);
    ASSERT_FALSE(ask(control::StopJob{.request = "", .name = "job"}).error);
    nodes.end(nodes.launched("job-algo-1").node_id);
    while (!jobs.find("job")->is_terminal()) core.nudge();
    const std::string arn = jobs.find("job")->spec.arn;

    EXPECT_EQ(ask(create("job")).error, ErrorCode::already_exists);
    EXPECT_EQ(ask(control::StopJob{.request = "", .name = "job"}).error,
              ErrorCode::precondition_failed);
    EXPECT_FALSE(ask(control::AddTags{.request = "", .arn = arn, .tags = {{"k", "v"}}}).error);
    EXPECT_EQ(jobs.find("job")->tags, (control::Tags{{"k", "v"}}));
    lock_database();
    EXPECT_EQ(ask(control::DeleteTags{.request = "", .arn = arn, .keys = {"k"}}).error,
              ErrorCode::unavailable);
    unlock_database();
    EXPECT_EQ(jobs.find("job")->tags, (control::Tags{{"k", "v"}}));
    EXPECT_FALSE(ask(control::DeleteTags{.request = "", .arn = arn, .keys = {"k"}}).error);
    EXPECT_TRUE(jobs.find("job")->tags.empty());

    // And to those of the next service.
    JobBoard after{database};
    Core next({.database = database,
               .keys = keys,
               .jobs = after,
               .logs = logs,
               .store = store,
               .clock = clock,
               .random = random},
              {});
    EXPECT_TRUE(after.find("job")->tags.empty());
    EXPECT_EQ(after.find("job")->status, jobs.find("job")->status);
    EXPECT_EQ(after.find_listed("job")->summary, jobs.find_listed("job")->summary);
}

TEST_F(CoreTest, a_node_is_not_silent_while_its_launch_waits_for_something_slow) {
    nodes.hold_launches(true);
    ASSERT_FALSE(ask(create("job")).error);
    clock.advance(std::chrono::seconds(31));
    for (int i = 0; i < 2; ++i) ask(control::Tick{});  // The second after the first looked.
    nodes.hold_launches(false);
    const spec::NodeConfig node = nodes.launched("job-algo-1");
    nodes.end(node.node_id, "the end");
    while (!jobs.find("job")->is_terminal()) core.nudge();
    EXPECT_THAT(jobs.find("job")->failure_reason, ::testing::HasSubstr("the end"));
}

TEST_F(CoreTest, a_node_that_is_launched_and_never_heard_of_is_silent) {
    ASSERT_FALSE(ask(create("job")).error);
    nodes.launched("job-algo-1");
    while (!jobs.find("job")->is_terminal()) {
        clock.advance(std::chrono::seconds(31));  // Whenever the core hears of the launch.
        core.nudge();
    }
    EXPECT_THAT(jobs.find("job")->failure_reason, ::testing::HasSubstr("silent for 30 s"));
}

TEST_F(CoreTest, a_stopped_core_takes_nothing_more) {
    core.stop();
    EXPECT_THROW(core.submit(control::Tick{}), Error);
}

}  // namespace
}  // namespace gruca::service
