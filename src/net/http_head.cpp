#include "net/http_head.h"

#include <algorithm>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/status.hpp>

#include "base/text.h"

namespace gruca::net {
namespace {
namespace http = boost::beast::http;

bool is_framing(std::string_view name) {
    return same_header_name(name, "content-length") || same_header_name(name, "connection") ||
           same_header_name(name, "transfer-encoding");
}

bool is_target(std::string_view target) {
    return target.starts_with('/') && std::all_of(target.begin(), target.end(), [](char c) {
               return c > ' ' && c < 0x7f;  // Everything else is sent percent-encoded.
           });
}

}  // namespace

std::optional<std::string> fault_of_raw_head(std::string_view raw) {
    char before = '\n';
    for (std::size_t i = 0; i < raw.size(); before = raw[i++]) {
        const char c = raw[i];
        if ((c == '\n') != (before == '\r')) return "a line of the head must end with CRLF";
        if (before == '\n' && (c == ' ' || c == '\t')) return "a line of the head is folded";
        const bool is_control = static_cast<unsigned char>(c) < ' ' || c == 0x7f;
        if (is_control && c != '\t' && c != '\r' && c != '\n') {
            return "the head has a control character";
        }
    }
    return std::nullopt;
}

std::optional<std::string> fault_of_head(const http::request_header<>& head) {
    const std::size_t encodings = head.count(http::field::transfer_encoding);
    const std::size_t lengths = head.count(http::field::content_length);
    const std::size_t hosts = head.count(http::field::host);
    if (head.version() != 10 && head.version() != 11) return "HTTP version must be 1.0 or 1.1";
    if (encodings > 0 && lengths > 0) return "both Content-Length and Transfer-Encoding";
    const std::string_view length = head[http::field::content_length];
    if (lengths > 1 || length.find_first_not_of("0123456789") != std::string_view::npos) {
        return "Content-Length must be one number";
    }
    if (encodings > 0) {
        const std::string_view encoding = head[http::field::transfer_encoding];
        const bool is_chunked = encodings == 1 && to_lower(encoding) == "chunked";
        if (!is_chunked || head.version() == 10) return "Transfer-Encoding must be chunked";
    }
    if (hosts > 1 || (hosts == 0 && head.version() == 11)) return "there must be one Host";
    if (!is_target(head.target())) return "target must begin with '/' and have no raw bytes";
    if (std::distance(head.begin(), head.end()) > static_cast<std::ptrdiff_t>(kHeaderFieldsMax)) {
        return "more than " + std::to_string(kHeaderFieldsMax) + " header fields";
    }
    return std::nullopt;
}

bool is_safe(const Headers& headers) {
    for (const auto& [name, value] : headers.fields()) {
        if (name.empty() || name.find_first_of("\r\n: ") != std::string::npos) return false;
        if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) return false;
    }
    return true;
}

bool may_have_body(int status) {
    return status >= 200 && status != 204 && status != 304;
}

HttpResponse plain_response(int status, std::string_view text) {
    return {.status = status,
            .headers = {{"Content-Type", "text/plain"}},
            .body = std::string(text) + "\n"};
}

std::string answer_head(const HttpResponse& response, const Framing& framing) {
    std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
    head += http::obsolete_reason(static_cast<http::status>(response.status));
    head += "\r\n";
    for (const auto& [name, value] : response.headers.fields()) {
        if (is_framing(name)) continue;
        head.append(name).append(": ").append(value).append("\r\n");
    }
    if (may_have_body(response.status)) {
        if (framing.bytes) {
            head.append("Content-Length: ").append(std::to_string(*framing.bytes)).append("\r\n");
        } else if (framing.in_chunks) {
            head.append("Transfer-Encoding: chunked\r\n");
        }
    }
    if (framing.closes) head.append("Connection: close\r\n");
    return head.append("\r\n");
}

}  // namespace gruca::net
