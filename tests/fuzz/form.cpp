// URLs and forms: what is read and written again is read the same.

#include "fuzz/target.h"
#include "net/url.h"

namespace net = gruca::net;

namespace {

void check_query(const std::string& text, bool form_encoded) {
    std::vector<std::pair<std::string, std::string>> fields;
    if (!gruca::fuzz::takes([&] { fields = net::parse_query(text, form_encoded); })) return;
    CHECK(fields.size() <= net::kQueryFieldsMax, "{} fields", fields.size());
    std::string again;
    for (const auto& [name, value] : fields) {
        if (!again.empty()) again += '&';
        again += net::percent_encode(name) + '=' + net::percent_encode(value);
    }
    CHECK(net::parse_query(again, form_encoded) == fields, "{}", again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text = gruca::fuzz::text_of(data, size);
    CHECK(net::percent_decode(net::percent_encode(text)) == text, "percent");
    CHECK(net::percent_decode(net::percent_encode(text, true)) == text, "percent, with slashes");
    check_query(text, false);
    check_query(text, true);
    net::S3Uri uri;
    if (gruca::fuzz::takes([&] { uri = net::parse_s3_uri(text); })) {
        CHECK(net::parse_s3_uri(uri.text()) == uri, "{}", uri.text());
        CHECK(!uri.bucket.empty() && !uri.key.starts_with('/'), "{}", uri.text());
    }
    net::Origin origin;
    if (gruca::fuzz::takes([&] { origin = net::parse_origin(text); })) {
        CHECK(!origin.host.empty() && origin.port > 0, "{}", text);
    }
    return 0;
}
