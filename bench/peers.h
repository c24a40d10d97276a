// bench/peers.h
//
// The programs beside which the service is measured, as processes on loopback: what
// bench/requirements.txt lists, installed in .bench-venv. Null where one is not installed, which is
// said on stderr.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/subprocess.h"
#include "base/temp_dir.h"

namespace gruca::bench {

class Peer {
  public:
    // `argv` behind the program's name; every "{port}" and "{dir}" in it is filled in.
    static std::unique_ptr<Peer> start(const std::string& program, std::vector<std::string> argv);
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    std::string origin() const { return "http://127.0.0.1:" + std::to_string(port_); }

  private:
    Peer(const std::string& program, std::vector<std::string> argv);

    const TempDir scratch_;
    const int port_;
    std::unique_ptr<Subprocess> process_;
};

// moto, the only other SageMaker API that one can host; it checks nothing and trains nothing.
std::unique_ptr<Peer> start_moto();
// SeaweedFS as one S3 server on this machine.
std::unique_ptr<Peer> start_seaweedfs();

// Trivial jobs a second through Slurm's sbatch, by bench/slurm_jobs.sh on a cluster of its own.
// Nothing where Slurm is not installed or does not start, which is said on stderr.
struct SlurmSpeed {
    std::string version;  // "Slurm 22.05.8"
    double jobs_per_s = 0;
};
std::optional<SlurmSpeed> measure_slurm(int jobs);

}  // namespace gruca::bench
