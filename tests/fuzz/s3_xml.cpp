// The documents that clients of objects send. What is taken keeps its limits, is text, and written
// out by our own writer it is taken again and says the same.

#include "service/s3/xml.h"

#include <algorithm>

#include "base/text.h"
#include "fuzz/s3_refusal.h"

namespace s3 = gruca::service::s3;

namespace {

// The writer has no way to write these.
bool can_be_written(const std::string& text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n' && c != '\r';
    });
}

void require_text(const std::string& text, std::size_t bytes_max) {
    CHECK(gruca::is_utf8(text), "not UTF-8 came out");
    CHECK(text.find('\0') == std::string::npos, "a NUL came out");
    CHECK(text.size() <= bytes_max, "more came out than went in");
}

void check_delete(const std::string& text) {
    const s3::DeleteDocument read = s3::read_delete(text);
    CHECK(!read.objects.empty() && read.objects.size() <= s3::kDeletedKeysMax, "how many keys");
    s3::XmlWriter writer;
    writer.open_root("Delete");
    for (const auto& object : read.objects) {
        CHECK(!object.key.empty(), "a key that is none");
        require_text(object.key, text.size());
        require_text(object.etag.value_or(""), text.size());
        if (!can_be_written(object.key + object.etag.value_or(""))) return;
        writer.open("Object");
        writer.add("Key", object.key);
        if (object.etag) writer.add("ETag", '"' + *object.etag + '"');
        writer.close("Object");
    }
    writer.add("Quiet", read.quiet ? "true" : "false");
    writer.close("Delete");
    const std::string written = writer.take();
    if (written.size() > s3::kXmlBytesMax) return;
    const s3::DeleteDocument again = s3::read_delete(written);
    CHECK(again.quiet == read.quiet && again.objects.size() == read.objects.size(), "{}", written);
    for (std::size_t i = 0; i < read.objects.size(); ++i) {
        CHECK(again.objects[i].key == read.objects[i].key, "another key: {}", written);
        CHECK(again.objects[i].etag == read.objects[i].etag, "another tag: {}", written);
    }
}

void check_complete(const std::string& text) {
    const auto parts = s3::read_complete(text);
    CHECK(!parts.empty() && parts.size() <= static_cast<std::size_t>(s3::kPartNumberMax), "parts");
    s3::XmlWriter writer;
    writer.open_root("CompleteMultipartUpload");
    int before = 0;
    for (const s3::CompletedPart& part : parts) {
        CHECK(part.number > before && part.number <= s3::kPartNumberMax, "{}", part.number);
        before = part.number;
        CHECK(!part.etag.empty(), "a part without a tag");
        require_text(part.etag, text.size());
        require_text(part.checksum, text.size());
        if (!can_be_written(part.etag + part.checksum)) return;
        writer.open("Part");
        writer.add("PartNumber", static_cast<std::uint64_t>(part.number));
        writer.add("ETag", '"' + part.etag + '"');
        if (!part.checksum.empty()) writer.add("ChecksumCRC32", part.checksum);
        writer.close("Part");
    }
    writer.close("CompleteMultipartUpload");
    const std::string written = writer.take();
    if (written.size() > s3::kXmlBytesMax) return;
    const auto again = s3::read_complete(written);
    CHECK(again.size() == parts.size(), "{}", written);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        CHECK(again[i].number == parts[i].number && again[i].etag == parts[i].etag &&
                  again[i].checksum == parts[i].checksum,
              "another part: {}", written);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text = gruca::fuzz::text_of(data, size);
    const bool deletes = gruca::fuzz::takes_or_refuses([&] { check_delete(text); });
    const bool completes = gruca::fuzz::takes_or_refuses([&] { check_complete(text); });
    CHECK(!deletes || !completes, "two documents in one");
    gruca::fuzz::takes_or_refuses([&] { require_text(s3::read_create_bucket(text), text.size()); });
    return 0;
}
