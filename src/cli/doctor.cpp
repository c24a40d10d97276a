#include "cli/doctor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gruca::cli {
namespace {

const char* word(Verdict verdict) {
    switch (verdict) {
        case Verdict::ok:
            return "ok";
        case Verdict::limited:
            return "limited";
        case Verdict::no:
            return "no";
    }
    return "";
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& one : words) text += (text.empty() ? "" : ", ") + one;
    return text;
}

std::string text_at(const Json& json, const char* subject, const char* member) {
    const Json* part = json.find(subject);
    return part == nullptr ? "gruca's programs did not say" : part->get_string(member);
}

Finding programs(const MachineFacts& facts) {
    if (facts.missing_programs.empty()) return {.subject = "programs", .found = "all are there"};
    return {.verdict = Verdict::no,
            .subject = "programs",
            .found = "not beside gruca: " + joined(facts.missing_programs),
            .consequence = "the service cannot start jobs",
            .remedy = "put gruca's programs into one directory: ./dev build"};
}

Finding sandbox(const MachineFacts& facts) {
    const std::string why = text_at(facts.probe, "sandbox", "why");
    if (why.empty()) {
        return {.subject = "sandbox",
                .found = "a program starts in namespaces of its own, kernel " + facts.kernel};
    }
    return {.verdict = Verdict::no,
            .subject = "sandbox",
            .found = why,
            .consequence = "no job can start",
            .remedy =
                "run the service as root, or allow user namespaces: "
                "sysctl kernel.unprivileged_userns_clone=1"};
}

Finding cgroups(const MachineFacts& facts) {
    std::vector<std::string> controllers;
    const Json* part = facts.probe.find("cgroups");
    const Json* groups = part == nullptr ? nullptr : part->find("groups");
    if (groups != nullptr) {
        for (const Json& group : groups->as_array()) {
            // "<hierarchy>/gruca/probe-1"
            const auto parent =
                std::filesystem::path(group.as_string()).parent_path().parent_path();
            controllers.push_back(parent.filename() == "cgroup" ? "version 2"
                                                                : parent.filename().string());
        }
    }
    if (!controllers.empty()) return {.subject = "cgroups", .found = joined(controllers)};
    return {.verdict = Verdict::limited,
            .subject = "cgroups",
            .found = facts.is_root ? "no control groups can be made" : "only root can make them",
            .consequence =
                "memory and processes of a job are neither counted nor limited, and a "
                "kill for want of memory is not told from others",
            .remedy = "run the service as root, with /sys/fs/cgroup mounted and writable"};
}

bool has_own_network(const MachineFacts& facts) {
    return text_at(facts.probe, "network", "why").empty();
}

std::vector<std::string> words_at(const Json& json, const char* subject, const char* member) {
    std::vector<std::string> words;
    const Json* part = json.find(subject);
    const Json* all = part == nullptr ? nullptr : part->find(member);
    if (all == nullptr) return words;
    for (const Json& one : all->as_array()) words.push_back(one.as_string());
    return words;
}

Finding network(const MachineFacts& facts) {
    if (has_own_network(facts)) {
        const Json& own = facts.probe.at("network");
        return {.subject = "network",
                .found = fmt::format("each instance has an eth0 of its own, on {}, {} behind {}",
                                     own.get_string("bridge"), own.get_string("subnet"),
                                     own.get_string("gateway"))};
    }
    return {.verdict = Verdict::limited,
            .subject = "network",
            .found = "no network of jobs: " + text_at(facts.probe, "network", "why"),
            .consequence =
                "jobs share this machine's network and its loopback: two that use one port, "
                "as torchrun does, collide; jobs reach what listens on 127.0.0.1; "
                "EnableNetworkIsolation is refused",
            .remedy =
                "run the service as root, in a container with CAP_NET_ADMIN and "
                "CAP_SYS_ADMIN; until then give each job ports of its own "
                "(torchrun --master-port)"};
}

Finding way_out(const MachineFacts& facts) {
    Finding finding{.subject = "way out", .found = "jobs reach what this machine reaches"};
    if (!has_own_network(facts)) return finding;
    const std::string why = text_at(facts.probe, "network", "way_out");
    const auto firewall = words_at(facts.probe, "network", "firewall");
    if (why.empty() && firewall.empty()) return finding;
    finding.verdict = Verdict::limited;
    finding.found = why.empty() ? joined(firewall) : why;
    finding.consequence =
        why.empty() ? "connections of jobs may hang until they time out"
                    : "jobs reach their peers, the service and this machine, and nothing beyond: "
                      "no pip install, no downloads";
    if (!why.empty()) finding.remedy = "sysctl net.ipv4.ip_forward=1; modprobe nf_tables nft_masq";
    return finding;
}

Finding resolver(const MachineFacts& facts) {
    Finding finding{.subject = "resolver", .found = "jobs look names up as this machine does"};
    if (!has_own_network(facts)) return finding;
    const auto servers = words_at(facts.probe, "resolver", "servers");
    finding.found = "jobs ask " + joined(servers);
    if (!servers.empty()) return finding;
    finding.verdict = Verdict::limited;
    finding.found = "no name server that jobs reach: a job's 127.0.0.1 is its own";
    finding.consequence = "jobs know each other's names and no others";
    finding.remedy = "name one in /etc/resolv.conf that is not on this machine's loopback";
    return finding;
}

Finding fuse(const MachineFacts& facts) {
    if (facts.fuse_obstacle.empty() && (facts.is_root || facts.has_fusermount)) {
        return {.subject = "FUSE", .found = "/dev/fuse can be opened"};
    }
    return {.verdict = Verdict::limited,
            .subject = "FUSE",
            .found = facts.fuse_obstacle.empty() ? "no fusermount3" : facts.fuse_obstacle,
            .consequence =
                "programs of jobs cannot mount file systems of their own; gruca itself "
                "downloads channels (File mode) and needs none",
            .remedy = "apt-get install fuse3; in a container, pass --device /dev/fuse"};
}

Finding memory(const MachineFacts& facts) {
    Finding finding{.subject = "memory",
                    .found = human_bytes(facts.memory_available_bytes) + " free of " +
                             human_bytes(facts.memory_bytes)};
    if (facts.swap_used_bytes > 0) {
        finding.found += ", " + human_bytes(facts.swap_used_bytes) + " swapped out";
    }
    if (facts.memory_available_bytes >= kMemoryWanted) return finding;
    finding.verdict = Verdict::limited;
    finding.consequence = "training soon ends for want of memory";
    finding.remedy = "end other programs, or use smaller batches";
    return finding;
}

Finding disk(const MachineFacts& facts) {
    const SpaceFacts& space = facts.data_dir;
    Finding finding{.subject = "disk",
                    .found = human_bytes(space.free_bytes) + " free at " + space.path};
    const bool few_files = space.files > 0 && space.free_files < kFilesWanted;
    if (few_files) finding.found += fmt::format(", room for {} files", space.free_files);
    if (!space.keeps_attributes) finding.found += ", no extended attributes";
    finding.remedy = "free space there, or choose another place: --data-dir";
    if (space.free_bytes < kDiskNeeded) {
        finding.verdict = Verdict::no;
        finding.consequence = "logs, checkpoints and artifacts cannot be kept";
    } else if (space.free_bytes < kDiskWanted || few_files) {
        finding.verdict = Verdict::limited;
        finding.consequence = "data, checkpoints and artifacts soon fill it";
    } else if (!space.keeps_attributes) {
        finding.verdict = Verdict::limited;
        finding.consequence = "S3 clients cannot keep types and metadata of objects";
    } else {
        finding.remedy.clear();
    }
    return finding;
}

Finding open_files(const MachineFacts& facts) {
    Finding finding{.subject = "open files",
                    .found = fmt::format("at most {}", facts.open_files_max)};
    if (facts.open_files_max >= kOpenFilesWanted) return finding;
    finding.verdict = Verdict::limited;
    finding.consequence = "the service takes fewer connections at a time";
    finding.remedy = "raise the hard limit: ulimit -Hn, LimitNOFILE= of the unit";
    return finding;
}

Finding processor(const MachineFacts& facts) {
    const auto has = [&](const char* feature) {
        const auto& all = facts.processor_features;
        return std::find(all.begin(), all.end(), feature) != all.end();
    };
    std::vector<std::string> used;
    for (const char* feature : {"avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16"}) {
        if (has(feature)) used.push_back(feature);
    }
    Finding finding{.subject = "processor",
                    .found = fmt::format("{} x {}", facts.cores, facts.processor)};
    if (!used.empty()) finding.found += ": " + joined(used);
    if (has("avx2") && has("fma")) return finding;
    finding.verdict = Verdict::limited;
    finding.consequence = "without AVX2 and FMA the built-in trainer is several times slower";
    return finding;
}

Finding gpus(const MachineFacts& facts) {
    return {
        .subject = "GPUs",
        .found = facts.gpus == 0 ? "none" : fmt::format("{} of NVIDIA, seen by jobs", facts.gpus)};
}

Finding clock(const MachineFacts& facts) {
    if (facts.clock_is_synchronised) return {.subject = "clock", .found = "synchronised"};
    return {.verdict = Verdict::limited,
            .subject = "clock",
            .found = "not synchronised",
            .consequence = "clients of other machines are refused when it is 15 minutes off",
            .remedy = "run chrony or systemd-timesyncd"};
}

}  // namespace

std::vector<Finding> examine(const MachineFacts& facts) {
    return {programs(facts),   sandbox(facts), cgroups(facts), network(facts),   way_out(facts),
            resolver(facts),   disk(facts),    memory(facts),  processor(facts), gpus(facts),
            open_files(facts), fuse(facts),    clock(facts)};
}

bool is_unusable(const std::vector<Finding>& findings) {
    return std::any_of(findings.begin(), findings.end(),
                       [](const Finding& one) { return one.verdict == Verdict::no; });
}

std::string findings_text(const std::vector<Finding>& findings) {
    std::string text;
    for (const Finding& one : findings) {
        text += fmt::format("{:<8} {:<11} {}\n", word(one.verdict), one.subject, one.found);
        if (one.verdict == Verdict::ok) continue;
        text += fmt::format("{:<20} so: {}\n", "", one.consequence);
        if (!one.remedy.empty()) text += fmt::format("{:<20} do: {}\n", "", one.remedy);
    }
    const auto limited = std::count_if(findings.begin(), findings.end(), [](const Finding& one) {
        return one.verdict == Verdict::limited;
    });
    if (is_unusable(findings)) return text + "Jobs cannot run here.\n";
    return text + (limited == 0 ? "Jobs can run here.\n"
                                : fmt::format("Jobs can run here, with {} {}.\n", limited,
                                              limited == 1 ? "limit" : "limits"));
}

Json findings_json(const std::vector<Finding>& findings) {
    Json all = Json::array();
    for (const Finding& one : findings) {
        all.push(Json::object({{"subject", one.subject},
                               {"verdict", word(one.verdict)},
                               {"found", one.found},
                               {"consequence", one.consequence},
                               {"remedy", one.remedy}}));
    }
    return Json::object({{"usable", !is_unusable(findings)}, {"findings", all}});
}

}  // namespace gruca::cli
