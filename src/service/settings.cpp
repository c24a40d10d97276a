#include "service/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "spec/fields.h"

namespace gruca::service {
namespace {

constexpr int kSlotsMax = 10'000;
constexpr int kMebibytesMax = 1 << 30;
constexpr int kJobMemoryMin = 16;  // MiB. With less not even a shell starts.

std::string flag_of(std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return "--" + name;
}

std::string field_of(std::string_view flag) {
    std::string name(flag.substr(2));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

[[noreturn]] void refuse(const std::string& flag, const std::string& wanted,
                         const std::string& value) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} must be {}: {}", flag, wanted, value));
}

void require_between(const std::string& flag, int value, int low, int high) {
    if (value >= low && value <= high) return;
    refuse(flag, fmt::format("from {} to {}", low, high), std::to_string(value));
}

bool is_switch(const std::string& field) {
    for (const spec::FieldFacts& facts : spec::field_facts(ServiceSettings())) {
        if (facts.name == field) return facts.kind == "bool";
    }
    return false;
}

}  // namespace

void require_valid(const ServiceSettings& settings) {
    require_between("--port", settings.port, 0, 65535);
    require_between("--slots", settings.slots, 1, kSlotsMax);
    require_between("--stop-grace", settings.stop_grace, 0, 86400);
    require_between("--heartbeat-lost", settings.heartbeat_lost, 1, 86400);
    if (settings.job_memory != 0) {
        require_between("--job-memory", settings.job_memory, kJobMemoryMin, kMebibytesMax);
    }
    require_between("--memory-reserve", settings.memory_reserve, 0, kMebibytesMax);
    require_between("--job-processes", settings.job_processes, 16, 4'194'304);
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (settings.account.size() != 12 ||
        !std::all_of(settings.account.begin(), settings.account.end(), is_digit)) {
        refuse("--account", "twelve digits", settings.account);
    }
    const auto is_region_letter = [&](char c) {
        return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-';
    };
    if (settings.region.empty() ||
        !std::all_of(settings.region.begin(), settings.region.end(), is_region_letter)) {
        refuse("--region", "a name such as us-east-1", settings.region);
    }
    if (settings.data_dir.empty()) refuse("--data-dir", "a directory", "(empty)");
}

ServiceArguments parse_service_arguments(const std::vector<std::string>& arguments) {
    ServiceArguments parsed;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        if (argument == "--help" || argument == "-h") {
            parsed.command = ServiceCommand::help;
            continue;
        }
        if (argument == "--print-config") {
            parsed.command = ServiceCommand::print_config;
            continue;
        }
        if (argument == "--probe") {
            parsed.command = ServiceCommand::probe;
            continue;
        }
        if (!argument.starts_with("--")) {
            throw Error(ErrorCode::invalid_argument,
                        "gruca-service takes flags only; see --help: " + argument);
        }
        const std::size_t equals = argument.find('=');
        const std::string field = field_of(argument.substr(0, equals));
        if (field.starts_with("no_") && is_switch(field.substr(3))) {
            spec::read_field(parsed.settings, field.substr(3), "false");
        } else if (equals != std::string::npos) {
            spec::read_field(parsed.settings, field, argument.substr(equals + 1));
        } else if (is_switch(field)) {
            spec::read_field(parsed.settings, field, "true");
        } else if (i + 1 < arguments.size()) {
            spec::read_field(parsed.settings, field, arguments[++i]);
        } else {
            throw Error(ErrorCode::invalid_argument, "a value is missing after " + argument);
        }
    }
    return parsed;
}

std::string service_help() {
    std::string text =
        "Usage: gruca-service [options]\n\n"
        "  Serves the training API, keeps its state, and runs jobs on this machine. Runs until\n"
        "  SIGTERM or SIGINT; jobs go on without it and are found again at the next start.\n\n"
        "Options:\n";
    for (const spec::FieldFacts& facts : spec::field_facts(ServiceSettings())) {
        const bool is_bool = facts.kind == "bool";
        const std::string flag = is_bool ? "--no-" + flag_of(facts.name).substr(2)
                                         : fmt::format("{} <{}>", flag_of(facts.name), facts.kind);
        const std::string otherwise =
            is_bool || facts.by_default.empty() ? "" : " Default: " + facts.by_default + ".";
        text +=
            fmt::format("  {:<26}{}{}{}\n", flag, is_bool ? "Do not: " : "", facts.help, otherwise);
    }
    text += fmt::format("  {:<26}{}\n", "--print-config", "Print every setting as JSON and end.");
    text += fmt::format("  {:<26}{}\n", "--probe",
                        "Try the network of jobs, print what came of it as JSON and end.");
    text += fmt::format("  {:<26}{}\n", "--help", "Print this and end.");
    text += "\nExample:\n  gruca-service --data-dir /srv/gruca --slots 8\n";
    return text;
}

std::string configuration_page() {
    std::string text =
        "# Configuration of gruca-service\n\n"
        "Generated from `src/service/settings.h`; a test compares it. Every setting is a flag of\n"
        "`gruca-service`; a switch is turned off with `--no-…`. `--print-config` shows them "
        "all.\n\n"
        "| flag | kind | default | meaning |\n|---|---|---|---|\n";
    for (const spec::FieldFacts& facts : spec::field_facts(ServiceSettings())) {
        text +=
            fmt::format("| `{}` | {} | {} | {} |\n", flag_of(facts.name), facts.kind,
                        facts.by_default.empty() ? "" : "`" + facts.by_default + "`", facts.help);
    }
    return text;
}

}  // namespace gruca::service
