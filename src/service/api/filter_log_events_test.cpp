// What a search through the logs of many nodes costs.

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "service/service_fixture.h"
#include "service/state/database.h"
#include "service/telemetry/log_reader.h"

namespace gruca::service {
namespace {

constexpr const char* kGroup = "/aws/sagemaker/TrainingJobs";

class FilterLogEventsTest : public ::testing::Test {
  protected:
    // A job that was over before the service started, each of whose nodes has said `text`.
    void start_after_a_job(int instances, std::string_view text) {
        running.stop();
        {
            Database database({.path = data / "state.db"});
            const JobSummary job{.name = "job",
                                 .number = 1,
                                 .arn = "arn:x/job",
                                 .instances = instances,
                                 .status = "Completed",
                                 .secondary = "Completed",
                                 .over = true,
                                 .training_started = kSaid,
                                 .ended = kSaid};
            database.commit({.jobs = {{.summary = job, .json = "{}"}}});
            for (int i = 1; i <= instances; ++i) store.append(node(i), 0, text, kSaid);
        }
        running.start();
    }
    static LogName node(int number) {
        return {.job = "job", .host = "algo-" + std::to_string(number)};
    }
    std::size_t found(Json request) {
        request.set("logGroupName", kGroup);
        const Json page = running.admin->call("Logs_20140328.FilterLogEvents", std::move(request));
        return page.at("events").as_array().size();
    }

    static constexpr TimePoint kSaid = TimePoint(std::chrono::hours(1));
    testing::RunningService running;
    const std::filesystem::path data = running.scratch.path() / "data";
    LogStore store{data / "logs"};
};

std::size_t peak_bytes() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::size_t>(usage.ru_maxrss) << 10;
}

TEST_F(FilterLogEventsTest, of_many_logs_one_long_line_is_held_at_a_time) {
    constexpr int kNodes = 100;
    constexpr std::size_t kGrowthMax = 100u << 20;  // A third of what all lines would take.
    start_after_a_job(kNodes, std::string(kEventBytesMax, '\xff') + "\n");
    const std::size_t before = peak_bytes();
    EXPECT_EQ(found(Json::object({{"filterPattern", "absent"}})), 0u);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // They keep what is freed.
    EXPECT_LT(peak_bytes() - before, kGrowthMax);
#else
    static_cast<void>(before);
    static_cast<void>(kGrowthMax);
#endif
}

TEST_F(FilterLogEventsTest, a_log_whose_time_is_out_of_the_question_is_not_read_again) {
    start_after_a_job(2, "a line\n");
    EXPECT_EQ(found(Json::object()), 2u);
    for (const int number : {1, 2}) {  // Whoever reads them now fails.
        const LogFiles files = store.files(node(number));
        for (const auto& path : {files.bytes, files.index}) {
            std::filesystem::remove(path);
            std::filesystem::create_directory(path);
        }
    }
    EXPECT_EQ(found(Json::object({{"startTime", to_ms(kSaid) + 1}})), 0u);
    EXPECT_EQ(found(Json::object({{"endTime", to_ms(kSaid)}})), 0u);
    EXPECT_THROW(found(Json::object()), Error);
}

}  // namespace
}  // namespace gruca::service
