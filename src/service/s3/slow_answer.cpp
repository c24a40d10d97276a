#include "service/s3/slow_answer.h"

#include <future>
#include <optional>
#include <utility>

#include "base/boundary.h"
#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "service/s3/refusal.h"
#include "service/s3/xml.h"

namespace gruca::service::s3 {
namespace {

constexpr std::chrono::milliseconds kLookTime{200};  // How often it is seen whether time is up.

}  // namespace

SlowAnswer::SlowAnswer(net::HttpStream& stream, const Clock& clock, net::HttpResponse head)
    : stream_(stream), clock_(clock), head_(std::move(head)), spoke_(clock.steady_now()) {}

void SlowAnswer::during(const std::function<void()>& work) {
    // Whoever leaves this block waits for the work, which is why a client that is gone hurts none.
    std::future<void> done = std::async(std::launch::async, work);
    while (done.wait_for(kLookTime) != std::future_status::ready) keep_alive();
    done.get();
}

void SlowAnswer::keep_alive() {
    const auto now = clock_.steady_now();  // Who sees the blank may set the clock.
    if (now - spoke_ < kSignOfLifeTime) return;
    if (!has_begun()) {
        stream_.begin(head_, std::nullopt);
        stream_.write(bytes_of(kXmlDeclaration));
    }
    stream_.write(bytes_of(" "));
    spoke_ = now;
}

void SlowAnswer::finish(std::string document) {
    CHECK(document.starts_with(kXmlDeclaration), "an answer that is no document");
    if (has_begun()) {
        stream_.write(bytes_of(std::string_view(document).substr(kXmlDeclaration.size())));
        return;
    }
    head_.body = std::move(document);
    stream_.send(std::move(head_));
}

void answer_slowly(SlowAnswer& answer, const std::string& request_id,
                   const std::function<std::string()>& make) {
    std::string document;
    std::optional<Refusal> refusal;
    const auto error = run_guarded([&] {
        try {
            answer.during([&] { document = make(); });
        } catch (const Refusal& thrown) {
            refusal = thrown;
        }
    });
    if (!answer.has_begun() && error) throw Error(*error);
    if (!answer.has_begun() && refusal) throw Refusal(*refusal);
    if (error) {
        log_error("request {} failed after its answer had begun: {}", request_id, error->what());
        refusal = Refusal{.fault = fault_of_failure(*error)};
    }
    answer.finish(refusal ? error_document(refusal->fault, request_id) : std::move(document));
}

}  // namespace gruca::service::s3
