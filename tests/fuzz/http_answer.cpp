// An answer says the same whether it comes whole or byte by byte.

#include "net/http_answer.h"

#include "base/boundary.h"
#include "base/text.h"
#include "fuzz/target.h"

namespace net = gruca::net;

namespace {

struct Reading {
    bool refused = false;
    bool whole = false;
    int status = 0;
    std::string body = {};
    std::vector<std::pair<std::string, std::string>> headers = {};

    friend bool operator==(const Reading&, const Reading&) = default;
};

Reading read(const std::string& text, std::size_t piece) {
    Reading reading;
    net::HttpAnswer answer("GET", [&](const net::HttpResponse&, std::span<const std::byte> bytes) {
        reading.body += gruca::text_of(bytes);
    });
    std::string waiting;
    const auto failure = gruca::run_guarded([&] {
        for (std::size_t at = 0; at < text.size() && !answer.is_whole(); at += piece) {
            waiting += text.substr(at, piece);
            const std::size_t used = answer.take(waiting);
            CHECK(used <= waiting.size(), "took {} of {} bytes", used, waiting.size());
            waiting.erase(0, used);
        }
        answer.take_end();
    });
    if (failure) return {.refused = true};
    reading.whole = answer.is_whole();
    reading.status = answer.response().status;
    reading.headers = answer.response().headers.fields();
    return reading;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text = gruca::fuzz::text_of(data, size);
    const Reading whole = read(text, std::max<std::size_t>(text.size(), 1));
    CHECK(whole == read(text, 1), "read in two ways: {}", text);
    CHECK(whole.refused || whole.whole, "taken although it is not whole: {}", text);
    return 0;
}
