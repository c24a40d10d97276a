// The head of a request, as the server reads it. A head that is taken has one reading: written out
// field by field, it is taken again and is the same. An answer's head breaks out of no line.

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "fuzz/target.h"
#include "net/http_head.h"

namespace net = gruca::net;
namespace http = boost::beast::http;

namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

// The line "GET / HTTP/1.1" as three, and the fields; nothing when the head is refused.
std::optional<Fields> read(const std::string& text) {
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos || net::fault_of_raw_head(text.substr(0, end + 4))) return {};
    http::request_parser<http::string_body> parser;
    parser.header_limit(8192);
    parser.body_limit(boost::none);
    boost::beast::error_code error;
    parser.put(boost::asio::buffer(text), error);
    if (!parser.is_header_done() || net::fault_of_head(parser.get())) return std::nullopt;
    const auto& head = parser.get();
    Fields fields = {{std::string(head.method_string()), std::string(head.target())},
                     {"version", std::to_string(head.version())}};
    for (const auto& field : head) {
        fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    return fields;
}

void check_answer(const Fields& fields) {
    net::HttpResponse answer{.status = 200};
    for (const auto& [name, value] : fields) answer.headers.add(name, value);
    if (!net::is_safe(answer.headers)) return;
    const std::string head = net::answer_head(answer, {.bytes = 3});
    std::size_t lines = 0;
    for (const char c : head) lines += c == '\n';
    CHECK(lines <= fields.size() + 3, "an answer of too many lines: {}", head);
    CHECK(head.find("\r\n\r\n") == head.size() - 4, "an answer that ends early: {}", head);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto fields = read(gruca::fuzz::text_of(data, size));
    if (!fields) return 0;
    const auto& [method, target] = fields->front();
    const std::string version = fields->at(1).second == "11" ? "1.1" : "1.0";
    std::string again = method + " " + target + " HTTP/" + version + "\r\n";
    for (std::size_t i = 2; i < fields->size(); ++i) {
        again += fields->at(i).first + ": " + fields->at(i).second + "\r\n";
    }
    again += "\r\n";
    CHECK(again.size() > 8192 || read(again) == fields, "read in two ways: {}", again);
    check_answer({fields->begin() + 2, fields->end()});
    return 0;
}
