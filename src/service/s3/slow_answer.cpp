#include "service/s3/slow_answer.h"

#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "service/s3/xml.h"

namespace gruca::service::s3 {

SlowAnswer::SlowAnswer(net::HttpStream& stream, const Clock& clock, net::HttpResponse head)
    : stream_(stream), clock_(clock), head_(std::move(head)), spoke_(clock.steady_now()) {}

void SlowAnswer::keep_alive() {
    if (clock_.steady_now() - spoke_ < kSignOfLifeTime) return;
    if (!has_begun()) {
        stream_.begin(head_, std::nullopt);
        stream_.write(bytes_of(kXmlDeclaration));
    }
    stream_.write(bytes_of(" "));
    spoke_ = clock_.steady_now();
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

}  // namespace gruca::service::s3
