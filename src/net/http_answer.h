// net/http_answer.h
//
// Reads the answer to a request as its bytes come, in pieces of any length: heads of status 1xx are
// passed over, the body is handed on as it comes. Strict in what an answer is, and limited; holds
// nothing but the head.
//
// Thread-compatible.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/http.h"

namespace gruca::net {

constexpr std::size_t kAnswerHeadBytesMax = 1u << 20;

class HttpAnswer {
  public:
    // Of the final answer. What `body` throws comes out of take() and take_end().
    using Body = std::function<void(const HttpResponse& head, std::span<const std::byte> bytes)>;

    HttpAnswer(std::string_view method, Body body);
    ~HttpAnswer();
    HttpAnswer(const HttpAnswer&) = delete;
    HttpAnswer& operator=(const HttpAnswer&) = delete;

    // Uses up the front of `input`, and wants the rest again with what comes after it. Throws
    // unavailable for what is no answer, resource_exhausted for a head beyond the limit.
    std::size_t take(std::string_view input);
    // The server has closed. Throws unavailable unless that ends the answer.
    void take_end();

    bool has_begun() const;         // A byte of it has come.
    bool may_go_on() const;         // "100 Continue" has come.
    bool has_head() const;          // The final one; response() has it.
    bool is_whole() const;          // Nothing more belongs to it,
    bool keeps_connection() const;  // and the next answer may follow.
    HttpResponse& response();       // Its body is for the owner to fill.

  private:
    class Parser;
    void begin_parser();

    const bool has_no_body_;
    const Body body_;
    std::unique_ptr<Parser> parser_;
    bool has_begun_ = false;
    bool may_go_on_ = false;
};

}  // namespace gruca::net
