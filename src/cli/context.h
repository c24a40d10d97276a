// cli/context.h
//
// The world as a command sees it, so that a test can be the world: streams, time, the terminal,
// the service. apps/gruca.cpp builds the real one.
//
// Owned by the main thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "cli/installation.h"

namespace gruca::cli {

// The service's API as commands call it. Errors are those of net/aws_client.h.
class Api {
  public:
    virtual ~Api() = default;
    virtual Json call(const std::string& target, const Json& request) = 0;
    virtual std::string caller_arn() = 0;  // STS GetCallerIdentity.
};

struct Context {
    std::ostream& out;
    std::ostream& err;
    std::istream& in;
    const Clock& clock;
    bool out_is_terminal = false;
    std::filesystem::path program_dir;  // Where gruca-service and gruca-train lie.
    std::function<std::optional<std::string>(const std::string& name)> environment;
    // `patient` calls outlast a restart of the service.
    std::function<std::unique_ptr<Api>(const Installation&, bool patient)> connect;
    std::function<void(Duration)> pause;
    // From the first call on, Ctrl-C no longer ends the program but makes this true.
    std::function<bool()> interrupted;
    // Becomes that program; returns only by throwing.
    std::function<void(const std::vector<std::string>& argv)> become;
};

}  // namespace gruca::cli
