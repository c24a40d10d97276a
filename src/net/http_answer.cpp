#include "net/http_answer.h"

#include <boost/beast/http/basic_parser.hpp>

#include "base/error.h"

namespace gruca::net {
namespace {
namespace http = boost::beast::http;
using boost::beast::error_code;

constexpr int kContinue = 100;
constexpr int kFinalMin = 200;

}  // namespace

class HttpAnswer::Parser final : public http::basic_parser<false> {
  public:
    explicit Parser(const Body& body) : body_(body) {}
    HttpResponse response = {};

  private:
    using Text = boost::beast::string_view;

    void on_request_impl(http::verb, Text, Text, int, error_code&) override {}
    void on_response_impl(int status, Text, int, error_code&) override { response.status = status; }
    void on_field_impl(http::field, Text name, Text value, error_code&) override {
        response.headers.add(std::string(name), std::string(value));
    }
    void on_header_impl(error_code&) override {}
    void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
    std::size_t on_body_impl(Text bytes, error_code&) override { return hand_on(bytes); }
    void on_chunk_header_impl(std::uint64_t, Text, error_code&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, Text bytes, error_code&) override {
        return hand_on(bytes);
    }
    void on_finish_impl(error_code&) override {}

    std::size_t hand_on(Text bytes) const {
        if (!bytes.empty()) body_(response, std::as_bytes(std::span(bytes.data(), bytes.size())));
        return bytes.size();
    }

    const Body& body_;
};

HttpAnswer::HttpAnswer(std::string_view method, Body body)
    : has_no_body_(method == "HEAD"), body_(std::move(body)) {
    begin_parser();
}

HttpAnswer::~HttpAnswer() = default;

void HttpAnswer::begin_parser() {
    parser_ = std::make_unique<Parser>(body_);
    parser_->eager(true);
    parser_->skip(has_no_body_);
    parser_->header_limit(kAnswerHeadBytesMax);
    parser_->body_limit(boost::none);  // The owner's.
}

std::size_t HttpAnswer::take(std::string_view input) {
    std::size_t used = 0;
    while (used < input.size() && !is_whole()) {
        has_begun_ = true;
        error_code failure;
        used += parser_->put(boost::asio::buffer(input.substr(used)), failure);
        if (failure == http::error::need_more) break;
        if (failure == http::error::header_limit || failure == http::error::buffer_overflow) {
            throw Error(ErrorCode::resource_exhausted, "the head of the answer is too long");
        }
        if (failure) {
            throw Error(ErrorCode::unavailable, "no HTTP answer: " + failure.message());
        }
        if (parser_->is_header_done() && parser_->response.status < kFinalMin) {
            may_go_on_ = may_go_on_ || parser_->response.status == kContinue;
            begin_parser();
        }
    }
    return used;
}

void HttpAnswer::take_end() {
    error_code failure;
    if (parser_->got_some()) parser_->put_eof(failure);
    if (!failure && is_whole()) return;
    throw Error(ErrorCode::unavailable, "cut off before the end of the answer");
}

bool HttpAnswer::has_begun() const {
    return has_begun_;
}

bool HttpAnswer::may_go_on() const {
    return may_go_on_;
}

bool HttpAnswer::has_head() const {
    return parser_->is_header_done();
}

bool HttpAnswer::is_whole() const {
    return parser_->is_done();
}

bool HttpAnswer::keeps_connection() const {
    return is_whole() && parser_->keep_alive();
}

HttpResponse& HttpAnswer::response() {
    return parser_->response;
}

}  // namespace gruca::net
