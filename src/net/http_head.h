// net/http_head.h
//
// What the server holds against heads, whoever reads or writes the bodies: which requests are
// refused, and how the head of an answer is written. Used by http_session and socket_stream.
//
// Pure functions, thread-safe.
#pragma once

#include <boost/beast/http/message.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http.h"

namespace gruca::net {

constexpr std::size_t kHeaderFieldsMax = 256;

// What is wrong with the bytes of a head, which end with an empty line, or nothing: control
// characters, lines that end with LF or CR alone, lines that are folded. Parsers differ on all
// three.
std::optional<std::string> fault_of_raw_head(std::string_view raw);

// What is wrong with a head that the parser let pass, or nothing. Two readers of one connection
// that disagree about where a request ends let one request hide in another, so everything that
// says it twice, or in a way not read here, is refused.
std::optional<std::string> fault_of_head(const boost::beast::http::request_header<>& head);

// How the end of an answer is told.
struct Framing {
    std::optional<std::uint64_t>
        bytes;  // Content-Length; nothing: chunks, or the connection's end.
    bool in_chunks = false;
    bool closes = false;  // "Connection: close".
};

// False when a field could break out of its line, and whoever chose its value could write headers
// of their own.
bool is_safe(const Headers& headers);

// The whole head, with the empty line, of a response whose headers are safe. The framing is ours:
// fields of that kind are left out.
std::string answer_head(const HttpResponse& response, const Framing& framing);

bool may_have_body(int status);

HttpResponse plain_response(int status, std::string_view text);

}  // namespace gruca::net
