#include "service/s3/slow_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "base/text.h"
#include "service/s3/refusal.h"
#include "service/s3/xml.h"

namespace gruca::service::s3 {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class RecordedStream final : public net::HttpStream {
  public:
    const net::HttpRequest& head() const override { return head_; }
    std::optional<std::uint64_t> body_bytes() const override { return 0; }
    std::size_t read(std::span<std::byte>) override { return 0; }
    void send(net::HttpResponse response) override {
        say_begun();
        sent = response.body;
    }
    void refuse(net::HttpResponse) override { FAIL(); }
    void begin(net::HttpResponse, std::optional<std::uint64_t> bytes) override {
        EXPECT_FALSE(begun || bytes);
        say_begun();
        if (is_broken) throw Error(ErrorCode::unavailable, "the client is gone");
    }
    void write(std::span<const std::byte> bytes) override {
        if (is_broken) throw Error(ErrorCode::unavailable, "the client is gone");
        sent += text_of(bytes);
        if (text_of(bytes) != " ") return;
        ++blanks;
        blanks.notify_all();
    }
    void write_file(int, std::uint64_t, std::uint64_t) override { FAIL(); }
    bool has_begun() const override { return begun; }

    std::atomic<bool> begun = false;
    std::atomic<std::size_t> blanks = 0;
    bool is_broken = false;
    std::string sent;

  private:
    void say_begun() {
        begun = true;
        begun.notify_all();
    }

    const net::HttpRequest head_ = {.method = "POST", .target = "/b/k"};
};

std::string document() {
    XmlWriter xml;
    xml.open("Delete");
    xml.open("Object");
    xml.add("Key", std::string_view("k"));
    xml.close("Object");
    xml.close("Delete");
    return xml.take();
}

class S3SlowAnswer : public testing::Test {
  protected:
    // What an operation does that takes so long that the answer has to begin.
    void take_long() {
        clock.advance(kSignOfLifeTime);
        stream.begun.wait(false);
    }
    void answer_with(const std::function<std::string()>& make) {
        SlowAnswer answer(stream, clock, {});
        answer_slowly(answer, "r-1", make);
    }

    RecordedStream stream;
    ManualClock clock{time_from_ms(0)};
};

TEST_F(S3SlowAnswer, a_quick_one_is_the_document_alone) {
    answer_with([] { return document(); });
    EXPECT_EQ(stream.sent, document());
}

TEST_F(S3SlowAnswer, a_quick_refusal_or_failure_is_thrown_before_anything_is_sent) {
    EXPECT_THROW(answer_with([]() -> std::string { refuse_precondition("If-Match"); }), Refusal);
    EXPECT_THROW(answer_with([]() -> std::string { throw Error(ErrorCode::data_loss, "gone"); }),
                 Error);
    EXPECT_FALSE(stream.begun);
}

TEST_F(S3SlowAnswer, signs_of_life_leave_a_document_that_parses) {
    answer_with([&] {
        for (std::size_t spoken = 1; spoken <= 4; ++spoken) {
            clock.advance(kSignOfLifeTime);
            for (std::size_t seen = stream.blanks; seen < spoken; seen = stream.blanks) {
                stream.blanks.wait(seen);
            }
        }
        return document();
    });
    EXPECT_TRUE(stream.sent.starts_with("<?xml"));
    EXPECT_EQ(stream.sent.size(), document().size() + 4);
    EXPECT_EQ(read_delete(stream.sent).objects.at(0).key, "k");
}

TEST_F(S3SlowAnswer, what_goes_wrong_after_a_sign_of_life_is_an_error_document) {
    answer_with([&]() -> std::string {
        take_long();
        refuse_precondition("If-None-Match");
    });
    EXPECT_THAT(stream.sent, AllOf(StartsWith("<?xml"), HasSubstr(">\n <Error><Code>Precond"),
                                   HasSubstr("<RequestId>r-1</RequestId>")));
}

TEST_F(S3SlowAnswer, a_failure_after_a_sign_of_life_is_an_error_document_without_its_text) {
    answer_with([&]() -> std::string {
        take_long();
        throw Error(ErrorCode::data_loss, "secret");
    });
    EXPECT_THAT(stream.sent, AllOf(HasSubstr("<Code>InternalError"), Not(HasSubstr("secret"))));
}

TEST_F(S3SlowAnswer, a_client_that_is_gone_does_not_end_the_work) {
    stream.is_broken = true;
    bool done = false;
    const auto make = [&] {
        take_long();
        done = true;
        return document();
    };
    EXPECT_THROW(answer_with(make), Error);
    EXPECT_TRUE(done);
}

}  // namespace
}  // namespace gruca::service::s3
