// cli/fake_world.h
//
// The world for tests of commands: canned API answers, a clock that moves when a command pauses, a
// data directory that looks like a running service's, and what was printed.
#pragma once

#include <unistd.h>

#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "cli/context.h"
#include "cli/gruca.h"

namespace gruca::cli {

// Owned by one thread.
class FakeWorld {
  public:
    using Answer = std::function<Json(const Json& request)>;

    // Makes the data directory say that process `pid` is the service.
    void run_service(pid_t pid = ::getpid()) {
        const Json facts = Json::object({{"pid", pid},
                                         {"endpoint", "http://127.0.0.1:7717"},
                                         {"region", "us-east-1"},
                                         {"account", "000000000000"}});
        write_file_atomic(data_dir() / "service.json", facts.dump());
        write_file_atomic(data_dir() / "credentials",
                          "[other]\naws_access_key_id = WRONG\n[gruca]\naws_access_key_id = AKID\n"
                          "aws_secret_access_key = secret\n");
    }

    // Runs `gruca <words>` and returns its exit code.
    int run(const std::vector<std::string>& words) {
        Context context{
            .out = out,
            .err = err,
            .in = in,
            .clock = clock,
            .out_is_terminal = is_terminal,
            .program_dir = program_dir.path(),
            .environment = [this](const std::string& name) -> std::optional<std::string> {
                if (name == "GRUCA_HOME") return data_dir().string();
                return std::nullopt;
            },
            .connect =
                [this](const Installation& service, bool) {
                    connected_to = service;
                    return std::make_unique<FakeApi>(*this);
                },
            .pause =
                [this](Duration time) {
                    clock.advance(time);
                    ++pauses;
                    if (on_pause) on_pause();
                },
            .interrupted = [this] { return is_interrupted; },
            .become = [this](const std::vector<std::string>& argv) { became = argv; }};
        return run_gruca(context, words);
    }

    // The same, expecting success; returns what was printed.
    std::string printed(const std::vector<std::string>& words) {
        out.str("");
        err.str("");
        const int code = run(words);
        if (code != 0) return "exit code " + std::to_string(code) + ": " + err.str();
        return out.str();
    }

    std::filesystem::path data_dir() const { return home.path(); }

    std::map<std::string, Answer> answers;  // By operation: "DescribeTrainingJob".
    std::vector<std::pair<std::string, Json>> calls;
    std::ostringstream out;
    std::ostringstream err;
    std::istringstream in;
    ManualClock clock{time_from_iso8601("2026-12-01T09:30:00Z")};
    bool is_terminal = false;
    bool is_interrupted = false;
    int pauses = 0;
    std::function<void()> on_pause;
    std::vector<std::string> became;
    std::optional<Installation> connected_to;
    TempDir home;
    TempDir program_dir;

  private:
    class FakeApi final : public Api {
      public:
        explicit FakeApi(FakeWorld& world) : world_(world) {}
        Json call(const std::string& target, const Json& request) override {
            const std::string operation = target.substr(target.find('.') + 1);
            world_.calls.emplace_back(operation, request);
            const auto answer = world_.answers.find(operation);
            if (answer == world_.answers.end()) {
                throw Error(ErrorCode::invalid_argument, "UnknownOperationException: " + operation);
            }
            return answer->second(request);
        }
        std::string caller_arn() override { return "arn:aws:iam::000000000000:user/admin"; }

      private:
        FakeWorld& world_;
    };
};

}  // namespace gruca::cli
