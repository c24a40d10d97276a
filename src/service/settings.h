// service/settings.h
//
// What an operator may set of gruca-service, each declared once: flags, help, --print-config and
// docs/reference/configuration.md come from here.
#pragma once

#include <string>
#include <vector>

namespace gruca::service {

struct ServiceSettings {
    std::string data_dir = "";  // Empty: $GRUCA_HOME, else ~/.gruca.
    std::string address = "127.0.0.1";
    int port = 7717;
    std::string region = "us-east-1";
    std::string account = "000000000000";
    int slots = 4;
    int stop_grace = 120;
    int heartbeat_lost = 30;
    std::string job_network = "auto";
    int job_memory = 0;
    int memory_reserve = 1024;
    int job_processes = 16384;
    bool aws_profile = true;

    template <class Visitor>
    void fields(Visitor& visit) {
        visit("data_dir", data_dir,
              "Where database, logs, objects and keys lie. Empty: $GRUCA_HOME, else ~/.gruca.");
        visit("address", address, "The address to listen on.");
        visit(
            "port", port,
            "The port to listen on; 0 takes any free one at the first start, and that one again at "
            "the next ones.");
        visit("region", region, "The region that ARNs name; clients may sign for any.");
        visit("account", account, "The account that ARNs name: twelve digits.");
        visit("slots", slots, "Instances that may run at once; jobs beyond wait in a queue.");
        visit("stop_grace", stop_grace,
              "Seconds between SIGTERM and SIGKILL when a job is stopped.");
        visit("heartbeat_lost", heartbeat_lost,
              "Seconds of silence after which a node counts as lost.");
        visit("job_network", job_network,
              "The network that jobs have for themselves: auto takes a free subnet where the "
              "service may, none lets jobs share the machine's, and 10.77.0.0/16 names one.");
        visit("job_memory", job_memory,
              "MiB of memory that one instance may use; 0: no limit of its own.");
        visit("memory_reserve", memory_reserve,
              "MiB of the machine's memory, half of it at most, that all instances together leave "
              "to others; 0: none.");
        visit("job_processes", job_processes,
              "Processes and threads that one instance may have; never more than a quarter of the "
              "machine's process ids.");
        visit("aws_profile", aws_profile, "Write the profile `gruca` into the user's AWS files.");
    }
};

// Throws invalid_argument naming the flag, the value and what would do.
void require_valid(const ServiceSettings& settings);

enum class ServiceCommand { run, print_config, probe, help };

struct ServiceArguments {
    ServiceCommand command = ServiceCommand::run;
    ServiceSettings settings = {};
};

// "--port 7718", "--port=7718", "--aws-profile" or "--no-aws-profile". The result is not yet
// checked by require_valid. Throws invalid_argument for an unknown flag, naming the nearest.
ServiceArguments parse_service_arguments(const std::vector<std::string>& arguments);

std::string service_help();
std::string configuration_page();  // docs/reference/configuration.md

}  // namespace gruca::service
