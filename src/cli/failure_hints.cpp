#include "cli/job_report.h"

namespace gruca::cli {

// Every section is a heading of docs/guide/when-a-job-fails.md; a test compares them.
const std::vector<FailureHint>& failure_hints() {
    static const std::vector<FailureHint> table = {
        {"out of memory",
         "use smaller batches or fewer instances on the machine, or give jobs more",
         "Out of memory"},
        {"no data: channel",
         "put objects under the channel's S3Uri, or correct the URI: gruca "
         "store ls <uri>",
         "No data in a channel"},
        {"not enough disk space", "free space in the service's data directory: gruca doctor",
         "Not enough disk space"},
        {"No space left on device", "free space in the service's data directory: gruca doctor",
         "Not enough disk space"},
        {"Artifact upload failed",
         "the program has run; make room or mend the output, then start "
         "from the last checkpoint",
         "The artifact could not be stored"},
        {"cannot start",
         "name a program that this machine has; check chmod +x and the first line "
         "of scripts",
         "The program cannot start"},
        {"does not let gruca isolate jobs",
         "run the service as root, or allow user namespaces: "
         "gruca doctor",
         "The machine refuses"},
        {"was lost:",
         "look at the end of its log and of the machine's (dmesg), then create the job "
         "anew with the same CheckpointConfig: it goes on from there",
         "A node was lost"},
        {"hangs in the kernel",
         "find out which file system does not answer, and restore it or "
         "restart the machine",
         "A process that cannot be ended"},
        {"killed by signal 9",
         "somebody or something outside the job killed it: dmesg, or whoever "
         "shares the machine",
         "Killed by a signal"},
        {"killed by signal",
         "a crash of the program itself: run it with a core file or under a "
         "debugger",
         "Killed by a signal"},
        {"AlgorithmError", "the reason quotes the program; its whole log: gruca job logs",
         "The program failed"},
        {"InternalServerError", "the service's own log has more: service.log in its data directory",
         "The service or a node failed"},
    };
    return table;
}

}  // namespace gruca::cli
