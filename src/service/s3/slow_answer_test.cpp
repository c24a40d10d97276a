#include "service/s3/slow_answer.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "service/s3/xml.h"

namespace gruca::service::s3 {
namespace {

class RecordedStream final : public net::HttpStream {
  public:
    const net::HttpRequest& head() const override { return head_; }
    std::optional<std::uint64_t> body_bytes() const override { return 0; }
    std::size_t read(std::span<std::byte>) override { return 0; }
    void send(net::HttpResponse response) override {
        begun = true;
        sent = response.body;
    }
    void begin(net::HttpResponse, std::optional<std::uint64_t> bytes) override {
        EXPECT_FALSE(begun || bytes);
        begun = true;
    }
    void write(std::span<const std::byte> bytes) override { sent += text_of(bytes); }
    void write_file(int, std::uint64_t, std::uint64_t) override { FAIL(); }
    bool has_begun() const override { return begun; }

    bool begun = false;
    std::string sent;

  private:
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

TEST(S3SlowAnswer, a_quick_one_is_the_document_alone) {
    RecordedStream stream;
    const ManualClock clock(time_from_ms(0));
    SlowAnswer answer(stream, clock, {});
    answer.keep_alive();
    EXPECT_FALSE(answer.has_begun());
    answer.finish(document());
    EXPECT_EQ(stream.sent, document());
}

TEST(S3SlowAnswer, signs_of_life_leave_a_document_that_parses) {
    RecordedStream stream;
    ManualClock clock(time_from_ms(0));
    SlowAnswer answer(stream, clock, {});
    for (int i = 0; i < 9; ++i) {
        clock.advance(std::chrono::milliseconds(kSignOfLifeTime) / 2);
        answer.keep_alive();
    }
    EXPECT_TRUE(answer.has_begun());
    answer.finish(document());
    EXPECT_TRUE(stream.sent.starts_with("<?xml"));
    EXPECT_EQ(stream.sent.size(), document().size() + 4);
    EXPECT_EQ(read_delete(stream.sent).objects.at(0).key, "k");
}

}  // namespace
}  // namespace gruca::service::s3
