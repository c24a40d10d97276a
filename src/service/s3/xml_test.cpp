#include "service/s3/xml.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "service/s3/refusal.h"

namespace gruca::service::s3 {
namespace {

template <class Read>
std::string code_of(Read read, const std::string& text) {
    try {
        read(text);
    } catch (const Refusal& refusal) {
        return refusal.fault.code;
    }
    return "";
}

TEST(S3Xml, reads_the_keys_to_delete_as_they_were_meant) {
    const DeleteDocument document = read_delete(
        "<?xml version=\"1.0\"?><Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
        "<Object><Key>a&amp;b &lt;c&gt; &#10;</Key></Object>"
        "<Object><Key>d</Key><ETag>\"e\"</ETag></Object><Quiet>true</Quiet></Delete>");
    ASSERT_EQ(document.objects.size(), 2u);
    EXPECT_EQ(document.objects[0].key, "a&b <c> \n");
    EXPECT_FALSE(document.objects[0].etag);
    EXPECT_EQ(document.objects[1].etag, "e");
    EXPECT_TRUE(document.quiet);
}

TEST(S3Xml, a_key_of_blanks_is_a_key) {
    EXPECT_EQ(read_delete("<Delete><Object><Key> </Key></Object></Delete>").objects[0].key, " ");
    EXPECT_EQ(read_delete("<Delete><Object><Key> a </Key></Object></Delete>").objects[0].key,
              " a ");
}

TEST(S3Xml, refuses_what_is_no_document_to_delete) {
    for (const char* text :
         {"", " ", "x", "<Delete>", "<Delete/>", "<Other/>", "<Delete/><Delete/>",
          "<Delete><Object/></Delete>", "<Delete><Object><Key></Key></Object></Delete>",
          "<Delete><Object><Key>a</Key></Object>",
          "<Delete><Object><Key>\xff</Key></Object></Delete>",
          "<!DOCTYPE d [<!ENTITY a \"b\">]><Delete><Object><Key>&a;</Key></Object></Delete>"}) {
        EXPECT_EQ(code_of(read_delete, text), "MalformedXML") << text;
    }
}

TEST(S3Xml, a_key_that_could_be_read_as_another_is_refused) {
    using namespace std::string_literals;
    for (const std::string& key :
         {"keep&#0;this"s, "keep&#x000;this"s, "keep&#4294967296;this"s, "keep\0this"s, "&#xd800;"s,
          "&#x110000;"s, "keep<?x?>this"s, "keep<b/>this"s, "keep</Key><Key>this"s}) {
        EXPECT_EQ(code_of(read_delete, "<Delete><Object><Key>" + key + "</Key></Object></Delete>"),
                  "MalformedXML")
            << key;
    }
}

TEST(S3Xml, depth_length_and_number_have_limits) {
    std::string deep = "<Delete>", many = "<Delete>";
    for (int i = 0; i < 100'000; ++i) deep += "<a>";
    for (std::size_t i = 0; i <= kDeletedKeysMax; ++i) many += "<Object><Key>k</Key></Object>";
    EXPECT_EQ(code_of(read_delete, deep), "MalformedXML");
    EXPECT_EQ(code_of(read_delete, many + "</Delete>"), "MalformedXML");
    EXPECT_EQ(code_of(read_delete, "<Delete>" + std::string(kXmlBytesMax, ' ') + "</Delete>"),
              "MalformedXML");
}

// Looking at each tag to the end of the text would take this test beyond its time limit.
TEST(S3Xml, a_document_costs_what_its_length_does) {
    const auto filled = [](std::string text, std::string_view with) {
        while (text.size() + with.size() < kXmlBytesMax) text += with;
        return text + ">";
    };
    EXPECT_EQ(code_of(read_delete, filled("", "</")), "MalformedXML");
    EXPECT_EQ(code_of(read_delete, filled("", "<a</")), "MalformedXML");
    EXPECT_EQ(code_of(read_delete, filled("<Delete a='", "<a</")), "MalformedXML");
}

TEST(S3Xml, depth_does_not_hide_in_quotes_or_instructions) {
    const auto nested = [](std::string_view tag) {
        std::string text = "<CreateBucketConfiguration>";
        for (int i = 0; i < 20; ++i) text += tag;
        for (int i = 0; i < 20; ++i) text += "</a>";
        return text + "</CreateBucketConfiguration>";
    };
    EXPECT_EQ(code_of(read_create_bucket, nested("<a>")), "MalformedXML");
    EXPECT_EQ(code_of(read_create_bucket, nested("<a b='></a>'>")), "MalformedXML");
    EXPECT_EQ(code_of(read_create_bucket, nested("<a><?p ></a>?>")), "MalformedXML");
    EXPECT_EQ(code_of(read_create_bucket,
                      "<CreateBucketConfiguration><a b='>' c='/'></a>"
                      "</CreateBucketConfiguration>"),
              "");
    EXPECT_EQ(code_of(read_create_bucket, "</a><a/>"), "MalformedXML");
}

TEST(S3Xml, what_a_delete_also_asks_for_is_not_lost) {
    const auto asked = [](const std::string& with) {
        return read_delete("<Delete><Object><Key>k</Key>" + with + "</Object></Delete>")
            .objects.at(0)
            .not_implemented;
    };
    EXPECT_EQ(asked("<VersionId>abc</VersionId>"), "VersionId");
    EXPECT_EQ(asked("<Size>1</Size>"), "Size");
    EXPECT_EQ(asked("<LastModifiedTime>x</LastModifiedTime>"), "LastModifiedTime");
    EXPECT_EQ(asked("<VersionId>null</VersionId>"), "");
    EXPECT_EQ(asked(""), "");
}

TEST(S3Xml, reads_the_parts_of_a_completion) {
    const auto parts = read_complete(
        "<CompleteMultipartUpload><Part><ETag>\"x\"</ETag><PartNumber>1</PartNumber></Part>"
        "<Part><PartNumber>10000</PartNumber><ETag>&quot;y&quot;</ETag>"
        "<ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part></CompleteMultipartUpload>");
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[0].etag, "x");
    EXPECT_EQ(parts[1].etag, "y");
    EXPECT_EQ(parts[1].number, 10'000);
    EXPECT_EQ(parts[1].checksum, "AAAAAA==");
}

TEST(S3Xml, refuses_parts_out_of_order_or_out_of_range) {
    const auto document = [](std::initializer_list<const char*> numbers) {
        std::string text = "<CompleteMultipartUpload>";
        for (const char* number : numbers) {
            text += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>e</ETag></Part>", number);
        }
        return text + "</CompleteMultipartUpload>";
    };
    EXPECT_EQ(code_of(read_complete, document({"2", "1"})), "InvalidPartOrder");
    EXPECT_EQ(code_of(read_complete, document({"1", "1"})), "InvalidPartOrder");
    for (const char* number : {"0", "10001", "-1", "x", "", "99999999999999999999"}) {
        EXPECT_EQ(code_of(read_complete, document({number})), "MalformedXML") << number;
    }
    EXPECT_EQ(code_of(read_complete, document({})), "MalformedXML");
}

TEST(S3Xml, what_is_written_is_read_back) {
    const std::string key = "a&b<c>\"d\" \r\n\t' é";
    XmlWriter xml;
    xml.open_root("Delete");
    xml.open("Object");
    xml.add("Key", key);
    xml.close("Object");
    xml.close("Delete");
    EXPECT_EQ(read_delete(xml.take()).objects.at(0).key, key);
}

}  // namespace
}  // namespace gruca::service::s3
