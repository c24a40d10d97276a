// train/job.h
//
// A training job as SageMaker's container contract describes it, from the files below /opt/ml to
// the exit code: read the configuration, find the other instances, train, leave the model.
//
//   input/config/hyperparameters.json, resourceconfig.json    what to do, who takes part
//   input/data/train, validation, tokenizer                   token shards; tokenizer.json
//   model/                                                    the result, from the first instance
//   output/failure                                            why it failed, for people
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>

#include "base/clock.h"

namespace gruca::train {

inline constexpr std::uint16_t kRendezvousPort = 29400;

struct JobOptions {
    std::filesystem::path base_dir = "/opt/ml";
    std::string checkpoint_uri = {};  // Empty: base_dir/checkpoints, if the job has checkpoints.
    std::string job_name = {};        // Keeps jobs apart that meet on one address.
    std::uint16_t rendezvous_port = kRendezvousPort;
    std::ostream& out;
    const Clock& clock;
    const std::atomic<bool>& stop_asked;  // Finish the step, save, leave.
};

// Returns the exit code; what went wrong has been reported and stands in output/failure.
int run_job(const JobOptions& options);

}  // namespace gruca::train
