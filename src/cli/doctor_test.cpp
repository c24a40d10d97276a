// The judgement over machines that a test makes up, and one look at the machine it runs on.
#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
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
                ["/sys/fs/cgroup/memory/gruca/probe-1", "/sys/fs/cgroup/pids/gruca/probe-1"]},
                "resolver": {"servers": ["10.0.0.2"]},
                "network": {"why": "", "way_out": "", "firewall": [], "bridge": "gruca-1a2b3c",
                            "subnet": "198.18.64.0/18", "gateway": "198.18.64.1"}})"),
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
    EXPECT_EQ(complaints, 10);  // All but the GPUs, which are nobody's fault.
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
    EXPECT_EQ(about(facts, "network").verdict, Verdict::limited);
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

Json network_of(const char* members) {
    Json probe = good_machine().probe;
    probe.set("network", Json::parse(members));
    return probe;
}

TEST(Doctor, the_network_of_jobs_is_told_by_its_bridge_and_addresses) {
    EXPECT_THAT(
        about(good_machine(), "network").found,
        AllOf(HasSubstr("gruca-1a2b3c"), HasSubstr("198.18.64.0/18"), HasSubstr("198.18.64.1")));
    EXPECT_THAT(about(good_machine(), "resolver").found, HasSubstr("10.0.0.2"));
}

TEST(Doctor, jobs_without_a_network_of_their_own_share_ports_and_need_no_way_out) {
    MachineFacts facts = good_machine();
    facts.probe = network_of(R"({"bridge": "gruca-1a2b3c", "way_out": "",
        "why": "the service does not run as root", "firewall": []})");
    const Finding network = about(facts, "network");
    EXPECT_EQ(network.verdict, Verdict::limited);
    EXPECT_THAT(network.found, HasSubstr("does not run as root"));
    EXPECT_THAT(network.consequence, AllOf(HasSubstr("torchrun"), HasSubstr("loopback")));
    EXPECT_THAT(network.remedy, AllOf(HasSubstr("root"), HasSubstr("--master-port")));
    EXPECT_EQ(about(facts, "way out").verdict, Verdict::ok);
    EXPECT_EQ(about(facts, "resolver").verdict, Verdict::ok);
    EXPECT_FALSE(is_unusable(examine(facts)));
}

TEST(Doctor, jobs_may_have_a_network_that_leads_nowhere) {
    MachineFacts facts = good_machine();
    facts.probe = network_of(R"({"why": "", "way_out": "no rules", "firewall": []})");
    EXPECT_THAT(about(facts, "way out").consequence, HasSubstr("pip install"));
    facts.probe = network_of(R"({"why": "", "way_out": "", "firewall": ["allow it: iptables"]})");
    EXPECT_THAT(about(facts, "way out").found, HasSubstr("iptables"));
    facts.probe = good_machine().probe;
    facts.probe.set("resolver", Json::parse(R"({"servers": []})"));
    EXPECT_EQ(about(facts, "resolver").verdict, Verdict::limited);
    EXPECT_EQ(about(facts, "network").verdict, Verdict::ok);
}

TEST(Doctor, json_has_the_same_findings) {
    const Json json = findings_json(examine(good_machine()));
    EXPECT_TRUE(json.at("usable").as_bool());
    EXPECT_EQ(json.at("findings").as_array().size(), 13u);
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

TEST(Doctor, a_program_that_hangs_is_killed_and_that_is_the_finding) {
    const TempDir scratch;
    for (const char* program : {"gruca-agent", "gruca-service"}) {
        write_file_atomic(scratch.path() / program, "#!/bin/sh\nexec sleep 1000\n", {.mode = 0755});
    }
    const MachineFacts facts =
        look_at_machine(scratch.path(), scratch.path(), std::chrono::milliseconds(300));
    for (const char* subject : {"sandbox", "network"}) {
        EXPECT_THAT(facts.probe.at(subject).at("why").as_string(), HasSubstr("has not answered"));
    }
}

}  // namespace
}  // namespace gruca::cli
