// bench/running_service.h
//
// A gruca-service of its own data directory and port, as a process, and clients that sign; and a
// database filled with jobs as a service that has run for long would have it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "net/aws_client.h"

namespace gruca::bench {

class RunningService {
  public:
    // Starts it and returns when it answers.
    RunningService(std::filesystem::path programs, std::filesystem::path data, int slots);
    ~RunningService();

    void kill();   // As kill -9 does.
    void start();  // After kill; returns when it answers.

    // One keep-alive connection a client, as long as one thread uses it.
    std::unique_ptr<net::AwsClient> client() const;
    const std::string& endpoint() const { return endpoint_; }
    net::Credentials credentials() const;

  private:
    const std::filesystem::path programs_;
    const std::filesystem::path data_;
    const int slots_;
    SystemClock clock_;
    std::unique_ptr<Subprocess> process_;
    std::string endpoint_;
    std::string port_ = "0";
};

// What CreateTrainingJob is asked: `command` is run by /bin/sh, or is a program when it has no
// blank.
Json job_request(const std::string& name, const std::string& command);

// Writes `over` jobs that have completed and `waiting` that need more slots than there are.
void fill_database(const std::filesystem::path& data, int over, int waiting);
// The name of the job of that place in a filled database.
std::string filled_name(int place);

}  // namespace gruca::bench
