// service/s3/slow_answer.h
//
// An answer that takes its time. S3 begins such an answer with 200 and sends blanks until the
// document is ready, so that no client gives up waiting; a failure then comes as an Error document
// in the body of that 200. The blanks stand behind the XML declaration, before which nothing may.
//
// Owned by the handler's thread, for the time of the call.
#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"
#include "net/http_stream.h"

namespace gruca::service::s3 {

constexpr auto kSignOfLifeTime = std::chrono::seconds(5);  // Clients wait a minute, mostly.

class SlowAnswer {
  public:
    // What is referred to outlives this. `head` is the answer without its body.
    SlowAnswer(net::HttpStream& stream, const Clock& clock, net::HttpResponse head);

    // Called now and then: sends a blank when kSignOfLifeTime has gone by in silence.
    void keep_alive();

    bool has_begun() const { return stream_.has_begun(); }

    // A whole XML document, declaration and all.
    void finish(std::string document);

  private:
    net::HttpStream& stream_;
    const Clock& clock_;
    net::HttpResponse head_;
    std::chrono::steady_clock::time_point spoke_;
};

}  // namespace gruca::service::s3
