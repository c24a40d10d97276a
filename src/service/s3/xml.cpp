#include "service/s3/xml.h"

#include <charconv>
#include <pugixml.hpp>

#include "base/text.h"
#include "service/api/answer.h"
#include "service/s3/refusal.h"

namespace gruca::service::s3 {
namespace {

constexpr int kDepthMax = 8;
// A key may be a blank: text that is only blanks is text where nothing else is.
constexpr unsigned int kHowToParse =
    pugi::parse_escapes | pugi::parse_eol | pugi::parse_ws_pcdata_single;

[[noreturn]] void refuse_document(const std::string& why) {
    refuse(400, "MalformedXML",
           "The XML you provided was not well-formed or did not validate against our published "
           "schema: " +
               why);
}

// Where a tag ends: at the first '>' that is not within the quotes of an attribute.
std::size_t end_of_tag(std::string_view text, std::size_t at) {
    char quote = '\0';
    for (; at < text.size(); ++at) {
        const char c = text[at];
        if (quote != '\0') {
            if (c == quote) quote = '\0';
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '>') {
            return at;
        }
    }
    refuse_document("a tag without an end");
}

// pugixml is lenient and does not stop at a depth of its own. One look at each byte.
void require_shallow(std::string_view text) {
    if (text.find('\0') != std::string_view::npos) refuse_document("it has a NUL");
    int depth = 0;
    for (std::size_t at = 0; (at = text.find('<', at)) != std::string_view::npos;) {
        const char next = at + 1 < text.size() ? text[at + 1] : '\0';
        if (next == '!') refuse_document("declarations and comments are not taken");
        if (next == '?' && !trim(text.substr(0, at)).empty()) {
            refuse_document("instructions are not taken");
        }
        const std::size_t end = next == '?' ? text.find("?>", at) : end_of_tag(text, at);
        if (end == std::string_view::npos) refuse_document("an instruction without an end");
        if (next == '/') {
            --depth;
        } else if (next != '?' && text[end - 1] != '/') {
            ++depth;
        }
        if (depth < 0) refuse_document("an end without a beginning");
        if (depth > kDepthMax) refuse_document("nested too deeply");
        at = end;
    }
}

// Of "&#65;" and "&#x41;" pugixml takes any number: zero would cut a key short, and more than 32
// bits begin anew at zero.
void require_characters(std::string_view text) {
    for (std::size_t at = 0; (at = text.find("&#", at)) != std::string_view::npos;) {
        at += 2;
        const bool is_hex = at < text.size() && text[at] == 'x';
        if (is_hex) ++at;
        std::uint32_t code = 0;
        const auto [end, error] =
            std::from_chars(text.data() + at, text.data() + text.size(), code, is_hex ? 16 : 10);
        const bool is_surrogate = code >= 0xd800 && code < 0xe000;
        if (error != std::errc() || code == 0 || code > 0x10ffff || is_surrogate) {
            refuse_document("a reference to a character that there is not");
        }
    }
}

pugi::xml_node root_of(pugi::xml_document& document, std::string_view text, const char* name) {
    if (text.size() > kXmlBytesMax) refuse_document("too long");
    if (!is_utf8(text)) refuse_document("not UTF-8");
    require_shallow(text);
    require_characters(text);
    const pugi::xml_parse_result result =
        document.load_buffer(text.data(), text.size(), kHowToParse, pugi::encoding_utf8);
    if (!result) refuse_document(result.description());
    const pugi::xml_node root = document.document_element();
    if (std::string_view(root.name()) != name || root.next_sibling()) {
        refuse_document(std::string("the root must be ") + name);
    }
    return root;
}

// The text of a node that holds nothing else: of a key with something in it, a part would be the
// key of another object.
std::string text_of(const pugi::xml_node& node) {
    const pugi::xml_node inner = node.first_child();
    if (!inner) return "";
    if (inner.type() != pugi::node_pcdata || inner.next_sibling()) {
        refuse_document(std::string(node.name()) + " must hold a text and nothing else");
    }
    return inner.value();
}

// Of the one child of this name; empty when there is none.
std::string text_of_child(const pugi::xml_node& node, const char* name) {
    const pugi::xml_node child = node.child(name);
    if (child && child.next_sibling(name)) refuse_document(std::string("two of ") + name);
    return text_of(child);
}

std::string unquoted(std::string_view etag) {
    etag = trim(etag);
    if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
        etag = etag.substr(1, etag.size() - 2);
    }
    return std::string(etag);
}

}  // namespace

DeleteDocument read_delete(std::string_view text) {
    pugi::xml_document document;
    const pugi::xml_node root = root_of(document, text, "Delete");
    DeleteDocument result;
    for (const pugi::xml_node node : root.children()) {
        const std::string_view name = node.name();
        if (name == "Quiet") result.quiet = to_lower(text_of(node)) == "true";
        if (name != "Object") continue;
        DeleteDocument::Object object{.key = text_of_child(node, "Key")};
        if (object.key.empty()) refuse_document("an Object without a Key");
        if (node.child("ETag")) object.etag = unquoted(text_of_child(node, "ETag"));
        const std::string version = text_of_child(node, "VersionId");
        if (!version.empty() && version != "null") object.not_implemented = "VersionId";
        for (const char* condition : {"LastModifiedTime", "Size"}) {
            if (node.child(condition)) object.not_implemented = condition;
        }
        result.objects.push_back(std::move(object));
        if (result.objects.size() > kDeletedKeysMax) refuse_document("more than 1000 keys");
    }
    if (result.objects.empty()) refuse_document("no Object");
    return result;
}

std::vector<CompletedPart> read_complete(std::string_view text) {
    pugi::xml_document document;
    const pugi::xml_node root = root_of(document, text, "CompleteMultipartUpload");
    std::vector<CompletedPart> parts;
    for (const pugi::xml_node node : root.children("Part")) {
        const auto number = parse_int(trim(text_of_child(node, "PartNumber")));
        if (!number || *number < 1 || *number > kPartNumberMax) refuse_document("a part's number");
        CompletedPart part{.number = static_cast<int>(*number),
                           .etag = unquoted(text_of_child(node, "ETag"))};
        if (part.etag.empty()) refuse_document("a Part without an ETag");
        for (const pugi::xml_node child : node.children()) {
            if (std::string_view(child.name()).starts_with("Checksum")) {
                part.checksum = trim(text_of(child));
            }
        }
        if (!parts.empty() && parts.back().number >= part.number) {
            refuse(400, "InvalidPartOrder",
                   "The list of parts was not in ascending order. Parts must be ordered by part "
                   "number.");
        }
        parts.push_back(std::move(part));
    }
    if (parts.empty()) refuse_document("no Part");
    return parts;
}

std::string read_create_bucket(std::string_view text) {
    if (trim(text).empty()) return "";
    pugi::xml_document document;
    const pugi::xml_node root = root_of(document, text, "CreateBucketConfiguration");
    return text_of_child(root, "LocationConstraint");
}

void XmlWriter::open(std::string_view name) {
    text_.append("<").append(name).append(">");
}

void XmlWriter::open_root(std::string_view name) {
    text_.append("<").append(name).append(" xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
}

void XmlWriter::close(std::string_view name) {
    text_.append("</").append(name).append(">");
}

void XmlWriter::add(std::string_view name, std::string_view value) {
    open(name);
    text_ += api::xml_escaped(value);
    close(name);
}

}  // namespace gruca::service::s3
