// Settings, their flags and pages, and the directory they name.

#include "service/settings.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/process_id.h"
#include "base/temp_dir.h"
#include "base/temporaries.h"
#include "service/data_dir.h"

namespace gruca::service {
namespace {

using testing::HasSubstr;

TEST(ServiceSettingsTest, flags_set_fields_in_every_form) {
    const ServiceArguments parsed = parse_service_arguments(
        {"--data-dir", "/d", "--port=0", "--no-aws-profile", "--stop-grace", "7"});
    EXPECT_EQ(parsed.command, ServiceCommand::run);
    EXPECT_EQ(parsed.settings.data_dir, "/d");
    EXPECT_EQ(parsed.settings.port, 0);
    EXPECT_EQ(parsed.settings.stop_grace, 7);
    EXPECT_FALSE(parsed.settings.aws_profile);
    EXPECT_EQ(parse_service_arguments({"--print-config"}).command, ServiceCommand::print_config);
}

TEST(ServiceSettingsTest, wrong_flags_are_refused) {
    for (const char* flag : {"--prot=1", "--port=x", "--port", "serve", "--no-port"}) {
        EXPECT_THROW(parse_service_arguments({flag}), Error) << flag;
    }
}

TEST(ServiceSettingsTest, values_out_of_range_are_refused_by_name) {
    const auto refusal = [](const std::string& flag) {
        ServiceSettings settings = parse_service_arguments({"--data-dir=/d", flag}).settings;
        try {
            require_valid(settings);
        } catch (const Error& error) {
            return error.message();
        }
        return std::string("accepted");
    };
    EXPECT_THAT(refusal("--account=123"), HasSubstr("--account"));
    EXPECT_THAT(refusal("--port=70000"), HasSubstr("--port"));
    EXPECT_THAT(refusal("--slots=0"), HasSubstr("--slots"));
    EXPECT_THAT(refusal("--region=Mars 1"), HasSubstr("--region"));
    EXPECT_THAT(refusal("--job-memory=1"), HasSubstr("--job-memory"));
    EXPECT_THAT(refusal("--memory-reserve=-1"), HasSubstr("--memory-reserve"));
    EXPECT_THAT(refusal("--job-processes=1"), HasSubstr("--job-processes"));
    EXPECT_EQ(refusal("--slots=8"), "accepted");
    EXPECT_EQ(refusal("--job-memory=0"), "accepted");
    EXPECT_EQ(refusal("--memory-reserve=0"), "accepted");
}

TEST(ServiceSettingsTest, help_names_every_flag) {
    for (const char* flag :
         {"--data-dir", "--heartbeat-lost", "--no-aws-profile", "--probe", "--help"}) {
        EXPECT_THAT(service_help(), HasSubstr(flag));
    }
}

TEST(ServiceSettingsTest, the_reference_page_is_the_generated_one) {
    const std::filesystem::path page =
        std::filesystem::path(GRUCA_SOURCE_DIR) / "docs" / "reference" / "configuration.md";
    if (std::getenv("GRUCA_WRITE_DOCS") != nullptr) {
        write_file_atomic(page, configuration_page());
    }
    EXPECT_EQ(read_file(page), configuration_page());
}

TEST(DataDirTest, a_second_service_on_the_same_directory_is_refused_by_name) {
    const TempDir scratch;
    const DataDir first(scratch.path() / "data");
    EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(first.path()).permissions()), 0700u);
    try {
        const DataDir second(scratch.path() / "data");
        FAIL() << "two services share a directory";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::already_exists);
        EXPECT_THAT(error.message(), HasSubstr(std::to_string(::getpid())));
        EXPECT_THAT(error.message(), HasSubstr((scratch.path() / "data").string()));
    }
}

TEST(DataDirTest, a_child_that_a_killed_service_was_starting_is_waited_for) {
    const TempDir scratch;
    const pid_t killed = ::fork();
    if (killed == 0) ::_exit(0);
    ::waitpid(killed, nullptr, 0);
    write_file_atomic(scratch.path() / "lock", std::to_string(killed) + "\n");
    UniqueFd child = open_file(scratch.path() / "lock", O_RDWR);
    ASSERT_EQ(::flock(child.get(), LOCK_EX | LOCK_NB), 0);
    const std::jthread exec([&child] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        child.reset();
    });
    const DataDir data(scratch.path());
    EXPECT_EQ(read_file(scratch.path() / "lock"), std::to_string(::getpid()) + "\n");
}

TEST(DataDirTest, what_a_killed_service_was_writing_is_removed) {
    const TempDir scratch;
    std::vector<std::string> left;
    for (const char* name : {"credentials", "service.json", "port"}) {
        left.push_back(make_temporary(scratch.path() / name).path);
    }
    const DataDir data(scratch.path());
    for (const std::string& path : left) EXPECT_FALSE(std::filesystem::exists(path)) << path;
}

TEST(DataDirTest, a_running_service_is_announced_and_a_stale_announcement_removed) {
    const TempDir scratch;
    {
        const DataDir data(scratch.path());
        data.announce({.endpoint = "http://127.0.0.1:1", .region = "r", .account = "a"});
        const Json facts = Json::parse(read_file(data.service_file()));
        EXPECT_EQ(facts.at("pid").as_int(), ::getpid());
        EXPECT_EQ(static_cast<std::uint64_t>(facts.at("started").as_int()),
                  process_id_of(::getpid())->start);
        EXPECT_EQ(facts.at("endpoint").as_string(), "http://127.0.0.1:1");
    }
    const DataDir again(scratch.path());
    EXPECT_FALSE(std::filesystem::exists(again.service_file()));
}

}  // namespace
}  // namespace gruca::service
