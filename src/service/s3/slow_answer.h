// service/s3/slow_answer.h
//
// An answer that takes its time. S3 begins such an answer with 200 and sends blanks until the
// document is ready, so that no client gives up waiting; a failure then comes as an Error document
// in the body of that 200. The blanks stand behind the XML declaration, before which nothing may.
//
// Owned by the handler's thread, for the time of the call.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/clock.h"
#include "net/http_stream.h"

namespace gruca::service::s3 {

constexpr auto kSignOfLifeTime = std::chrono::seconds(5);  // Clients wait a minute, mostly.

class SlowAnswer {
  public:
    // What is referred to outlives this. `head` is the answer without its body.
    SlowAnswer(net::HttpStream& stream, const Clock& clock, net::HttpResponse head);

    // Runs `work` on a thread of its own, and meanwhile sends a blank whenever kSignOfLifeTime has
    // gone by in silence. Throws what `work` throws, or that the client is gone; either way `work`
    // is over.
    void during(const std::function<void()>& work);

    bool has_begun() const { return stream_.has_begun(); }

    // A whole XML document, declaration and all.
    void finish(std::string document);

  private:
    void keep_alive();

    net::HttpStream& stream_;
    const Clock& clock_;
    net::HttpResponse head_;
    std::chrono::steady_clock::time_point spoke_;
};

// The whole of it: answers with the document that `make` returns. A Refusal or Error that it throws
// is thrown here as long as nothing was sent, and is an Error document in the body from then on.
void answer_slowly(SlowAnswer& answer, const std::string& request_id,
                   const std::function<std::string()>& make);

}  // namespace gruca::service::s3
