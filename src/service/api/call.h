// service/api/call.h
//
// One authenticated request on its way to an operation: who asks, what for, what with, and where
// the answer goes.
#pragma once

#include <string>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "net/http_server.h"
#include "service/api/answer.h"
#include "service/core.h"
#include "spec/train_job.h"

namespace gruca::service::api {

// What operations work with; all of it outlives the calls.
struct Context {
    Core& core;
    const JobBoard& jobs;
    LogStore& logs;
    const Clock& clock;
    Random& random;
    spec::AccountFacts account;
};

struct Caller {
    KeyKind kind = KeyKind::admin;
    std::string owner;  // The node's id, the job's name, "admin".
};

// Answers one call, from any thread; the first answer counts. Copyable.
class Responder {
  public:
    Responder(net::HttpReply reply, Protocol protocol, std::string request_id)
        : reply_(std::move(reply)), protocol_(protocol), request_id_(std::move(request_id)) {}

    void answer(const Outcome& outcome) const {
        reply_.send(encode(outcome, protocol_, request_id_));
    }
    const std::string& request_id() const { return request_id_; }

  private:
    net::HttpReply reply_;
    Protocol protocol_;
    std::string request_id_;
};

struct Call {
    std::string service;  // "SageMaker"
    std::string request_id;
    Caller caller;
    Json request = Json::object();
    const net::HttpRequest& http;  // For the operations whose body is bytes.
};

}  // namespace gruca::service::api
