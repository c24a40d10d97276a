// The judgement over machines that a test makes up, and one look at the machine it runs on.
#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/temp_dir.h"

namespace gruca::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

MachineFacts good_machine() {
    const SpaceFacts space{.path = "/data",
                           .free_bytes = 100ull << 30,
                           .free_files = 1'000'000,
                           .files = 2'000'000,
                           .keeps_attributes = true};
    return {.is_root = true,
            .kernel = "6.1.0",
            .missing_programs = {},
            .probe = Json::parse(R"({"sandbox": {"why": ""}, "cgroups": {"groups":
                ["/sys/fs/cgroup/memory/gruca/probe-1", "/sys/fs/cgroup/pids/gruca/probe-1"]}})"),
            .fuse_obstacle = "",
            .has_fusermount = true,
            .memory_bytes = 32ull << 30,
            .memory_available_bytes = 30ull << 30,
            .data_dir = space,
            .open_files_max = 1 << 20,
            .cores = 8,
            .processor = "A Processor",
            .processor_features = {"avx2", "fma", "sse2"},
            .clock_is_synchronised = true};
}

Finding about(const MachineFacts& facts, const std::string& subject) {
    for (const Finding& one : examine(facts)) {
        if (one.subject == subject) return one;
    }
    ADD_FAILURE() << "nothing is said about " << subject;
    return {};
}

TEST(Doctor, a_good_machine_has_nothing_to_complain_of) {
    const auto findings = examine(good_machine());
    for (const Finding& one : findings) {
        EXPECT_EQ(one.verdict, Verdict::ok) << one.subject;
        EXPECT_EQ(one.consequence + one.remedy, "") << one.subject;
    }
    EXPECT_THAT(findings_text(findings),
                AllOf(HasSubstr("ok       cgroups     memory, pids\n"),
                      HasSubstr("ok       processor   8 x A Processor: avx2, fma\n"),
                      HasSubstr("\nJobs can run here.\n")));
}

TEST(Doctor, every_complaint_says_what_follows) {
    MachineFacts facts;
    facts.missing_programs = {"gruca-agent"};
    facts.probe = Json::parse(R"({"sandbox": {"why": "no user namespaces"}})");
    facts.fuse_obstacle = "/dev/fuse: No such file or directory";
    const auto findings = examine(facts);
    const auto complaints = std::count_if(findings.begin(), findings.end(), [](const Finding& one) {
        return one.verdict != Verdict::ok;
    });
    EXPECT_EQ(complaints, 9);  // All but the GPUs, which are nobody's fault.
    for (const Finding& one : findings) {
        if (one.verdict == Verdict::ok) continue;
        EXPECT_NE(one.consequence, "") << one.subject;
    }
    EXPECT_TRUE(is_unusable(findings));
    EXPECT_THAT(findings_text(findings),
                AllOf(HasSubstr("no       sandbox     no user namespaces\n"),
                      HasSubstr("so: no job can start\n"), HasSubstr("\nJobs cannot run here.\n")));
}

TEST(Doctor, an_agent_that_does_not_answer_is_not_taken_for_a_good_sandbox) {
    MachineFacts facts = good_machine();
    facts.probe = Json::object();
    EXPECT_EQ(about(facts, "sandbox").verdict, Verdict::no);
    EXPECT_EQ(about(facts, "cgroups").verdict, Verdict::limited);
}

TEST(Doctor, a_limit_does_not_stop_jobs) {
    MachineFacts facts = good_machine();
    facts.memory_available_bytes = 1 << 20;
    const auto findings = examine(facts);
    EXPECT_FALSE(is_unusable(findings));
    EXPECT_THAT(findings_text(findings), HasSubstr("\nJobs can run here, with 1 limit.\n"));
}

TEST(Doctor, a_disk_may_lack_bytes_files_or_attributes) {
    MachineFacts facts = good_machine();
    facts.data_dir.free_bytes = kDiskNeeded - 1;
    EXPECT_EQ(about(facts, "disk").verdict, Verdict::no);
    facts.data_dir.free_bytes = kDiskWanted - 1;
    EXPECT_EQ(about(facts, "disk").verdict, Verdict::limited);
    facts = good_machine();
    facts.data_dir.free_files = 5;
    EXPECT_THAT(about(facts, "disk").found, HasSubstr("room for 5 files"));
    EXPECT_EQ(about(facts, "disk").verdict, Verdict::limited);
    facts.data_dir.files = 0;  // btrfs makes them as it goes.
    EXPECT_EQ(about(facts, "disk").verdict, Verdict::ok);
    facts.data_dir.keeps_attributes = false;
    EXPECT_THAT(about(facts, "disk").consequence, HasSubstr("metadata"));
}

TEST(Doctor, version_2_of_control_groups_is_told_from_the_controllers_of_version_1) {
    MachineFacts facts = good_machine();
    facts.probe = Json::parse(
        R"({"sandbox": {"why": ""}, "cgroups": {"groups": ["/sys/fs/cgroup/gruca/probe-1"]}})");
    EXPECT_EQ(about(facts, "cgroups").found, "version 2");
}

TEST(Doctor, json_has_the_same_findings) {
    const Json json = findings_json(examine(good_machine()));
    EXPECT_TRUE(json.at("usable").as_bool());
    EXPECT_EQ(json.at("findings").as_array().size(), 10u);
    EXPECT_EQ(json.at("findings").as_array().at(0).get_string("verdict"), "ok");
}

TEST(Doctor, the_look_at_this_machine_finds_what_every_machine_has) {
    const TempDir nowhere;
    const MachineFacts facts = look_at_machine(nowhere.path(), nowhere.path() / "not" / "made");
    EXPECT_THAT(facts.missing_programs, testing::SizeIs(4));
    EXPECT_THAT(about(facts, "sandbox").found, HasSubstr("gruca-agent"));
    EXPECT_GT(facts.memory_bytes, 1u << 20);
    EXPECT_GT(facts.memory_available_bytes, 1u << 20);
    EXPECT_GT(facts.data_dir.free_bytes, 1u << 20);
    EXPECT_GE(facts.cores, 1);
    EXPECT_GT(facts.open_files_max, 0u);
    EXPECT_NE(facts.processor, "");
    EXPECT_THAT(facts.processor_features, Not(testing::IsEmpty()));
    EXPECT_FALSE(std::filesystem::exists(nowhere.path() / "not"));
    EXPECT_TRUE(std::filesystem::is_empty(nowhere.path()));
}

}  // namespace
}  // namespace gruca::cli
