// service/s3/xml.h
//
// The XML documents of S3: those that clients send, read here as a stranger's, and the writer of
// those they are answered with. No DTD, no entities but the five of XML itself; limited depth and
// size, and a document that does not fit throws a Refusal (MalformedXML).
//
// Pure; thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/s3/checksum.h"

namespace gruca::service::s3 {

constexpr std::string_view kXmlDeclaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
constexpr std::size_t kXmlBytesMax = 2u << 20;  // 10,000 parts with their checksums.
constexpr std::size_t kDeletedKeysMax = 1000;
constexpr int kPartNumberMax = 10'000;

struct DeleteDocument {
    struct Object {
        std::string key;
        std::optional<std::string> etag = {};  // Delete only this version.
        std::string not_implemented = {};  // What else it asks for: that it must not be deleted.
    };
    std::vector<Object> objects;
    bool quiet = false;
};
DeleteDocument read_delete(std::string_view text);

struct CompletedPart {
    int number = 0;
    std::string etag;           // Without quotes.
    std::string checksum = {};  // Base64; empty: not told.
};
std::vector<CompletedPart> read_complete(std::string_view text);

// The LocationConstraint of CreateBucket; empty: none.
std::string read_create_bucket(std::string_view text);

// Builds a document from the outside in; every text is escaped. What XML 1.0 cannot hold (control
// characters) is written as U+FFFD: clients that have such keys ask for encoding-type=url.
class XmlWriter {
  public:
    XmlWriter() : text_(kXmlDeclaration) {}

    void open(std::string_view name);
    void open_root(std::string_view name);  // With S3's namespace.
    void close(std::string_view name);
    void add(std::string_view name, std::string_view value);
    void add(std::string_view name, std::uint64_t value) { add(name, std::to_string(value)); }
    std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

}  // namespace gruca::service::s3
