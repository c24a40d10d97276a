// The head of a request for objects: a line of method and target, then lines of headers. Bucket and
// key have one spelling that means them, a range lies in its object, a date is read as it is
// written.

#include "service/s3/request.h"

#include "base/text.h"
#include "fuzz/request_text.h"
#include "fuzz/s3_refusal.h"
#include "net/url.h"

namespace net = gruca::net;
namespace s3 = gruca::service::s3;

namespace {

void check_parts(const s3::Request& request) {
    CHECK(gruca::is_utf8(request.bucket()) && gruca::is_utf8(request.key()), "not UTF-8");
    CHECK(request.key().size() <= s3::kKeyBytesMax, "too long a key");
    net::HttpRequest plain{.method = request.method(), .target = "/"};
    plain.target += net::percent_encode(request.bucket());
    if (!request.key().empty()) plain.target += "/" + net::percent_encode(request.key(), true);
    std::string mark = "?";
    for (const auto& [name, value] : request.query()) {
        plain.target += mark + net::percent_encode(name) + "=" + net::percent_encode(value);
        mark = "&";
    }
    const s3::Request again(plain);
    CHECK(again.bucket() == request.bucket() && again.key() == request.key() &&
              again.query() == request.query(),
          "read in two ways: {}", plain.target);
}

void check_range(const s3::Request& request) {
    for (const std::uint64_t size : {0ull, 1ull, 1000ull, 1ull << 40}) {
        gruca::fuzz::takes_or_refuses([&] {
            const auto range = s3::range_of(request.header("range"), size);
            if (!range) return;
            CHECK(range->bytes > 0 && range->bytes <= size && range->begin <= size - range->bytes,
                  "{} bytes from {} of {}", range->bytes, range->begin, size);
        });
    }
}

void check_conditions(const s3::Request& request) {
    const gruca::TimePoint now = gruca::time_from_ms(1'780'000'000'500);
    for (const char* prefix : {"", "x-amz-copy-source-"}) {
        gruca::fuzz::takes_or_refuses([&] { s3::is_not_modified(request, prefix, "etag", now); });
    }
    const auto time = s3::time_of_http_date(request.header("if-modified-since").value_or(""));
    if (!time) return;
    CHECK(s3::time_of_http_date(s3::http_date(*time)) == time, "another time");
}

void check_copy_source(const s3::Request& request) {
    const auto header = request.header("x-amz-copy-source");
    if (!header) return;
    const s3::CopySource source = s3::copy_source_of(*header);
    CHECK(!source.bucket.empty() && !source.key.empty(), "a copy of nothing");
    CHECK(source.bucket.find('/') == std::string::npos, "a slash in a bucket");
    const s3::CopySource again = s3::copy_source_of(net::percent_encode(source.bucket) + "/" +
                                                    net::percent_encode(source.key, true));
    CHECK(again.bucket == source.bucket && again.key == source.key, "read in two ways");
}

void check_bucket(const std::string& bucket) {
    s3::require_bucket_name(bucket);
    CHECK(bucket.size() >= 3 && bucket.size() <= 63, "a bucket of {} bytes", bucket.size());
    CHECK(bucket.find('/') == std::string::npos && bucket.front() != '.', "{}", bucket);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const net::HttpRequest head = gruca::fuzz::request_of(gruca::fuzz::text_of(data, size));
    if (!head.target.starts_with('/')) return 0;  // The server takes no other.
    gruca::fuzz::takes_or_refuses([&] {
        const s3::Request request(head);
        check_parts(request);
        check_range(request);
        check_conditions(request);
        gruca::fuzz::takes_or_refuses([&] { check_copy_source(request); });
        gruca::fuzz::takes_or_refuses([&] { check_bucket(request.bucket()); });
        gruca::fuzz::takes_or_refuses([&] {
            const auto number = request.number("partNumber", 1, 1, 10'000);
            CHECK(number >= 1 && number <= 10'000, "{}", number);
        });
    });
    return 0;
}
