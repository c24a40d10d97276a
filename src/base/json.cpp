#include "base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "base/error.h"

namespace gruca {
namespace {

// What is wrong, in our words: the parser's name its own kinds of token and quote the text.
const char* fault_of(const nlohmann::detail::exception& error, bool at_end) {
    constexpr int kNumberOutOfRange = 406;
    if (error.id == kNumberOutOfRange) return "a number that no double can hold";
    if (at_end) return "it ends before its value does";
    if (std::string_view(error.what()).find("UTF-8") != std::string_view::npos) {
        return "a text that is not UTF-8";
    }
    return "unexpected character";
}

// Builds a Json from nlohmann's events, so that its own value type never exists.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit Builder(std::size_t size) : size_(size) {}

    Json take() { return std::move(root_); }

    bool null() override { return add(Json()); }
    bool boolean(bool value) override { return add(Json(value)); }
    bool number_integer(std::int64_t value) override { return add(Json(value)); }
    bool number_unsigned(std::uint64_t value) override {
        if (value > static_cast<std::uint64_t>(INT64_MAX)) {
            return add(Json(static_cast<double>(value)));
        }
        return add(Json(static_cast<std::int64_t>(value)));
    }
    bool number_float(double value, const std::string&) override { return add(Json(value)); }
    bool string(std::string& value) override { return add(Json(std::move(value))); }
    bool binary(nlohmann::json::binary_t&) override { return false; }
    bool start_object(std::size_t) override { return open(Json::object()); }
    bool key(std::string& name) override {
        open_.back().key = std::move(name);
        return true;
    }
    bool end_object() override { return close(); }
    bool start_array(std::size_t) override { return open(Json::array()); }
    bool end_array() override { return close(); }
    bool parse_error(std::size_t position, const std::string&,
                     const nlohmann::detail::exception& error) override {
        throw Error(ErrorCode::invalid_argument, fmt::format("not JSON, at byte {}: {}", position,
                                                             fault_of(error, position > size_)));
    }

  private:
    struct Open {
        Json container;
        std::string key = {};
        // Where each member stands, so that a large object is read in linear time.
        std::unordered_map<std::string, std::size_t> places = {};
    };

    bool add(Json value) {
        if (open_.empty()) {
            root_ = std::move(value);
        } else if (open_.back().container.is_array()) {
            open_.back().container.push(std::move(value));
        } else {
            add_member(open_.back(), std::move(value));
        }
        return true;
    }
    static void add_member(Open& open, Json value) {
        Json::Object& members = open.container.as_object();
        const auto [place, is_new] = open.places.try_emplace(open.key, members.size());
        if (is_new) {
            members.emplace_back(std::move(open.key), std::move(value));
        } else {
            members[place->second].second = std::move(value);
        }
    }
    bool open(Json container) {
        if (open_.size() >= Json::kDepthMax) {
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("JSON is nested deeper than {}", Json::kDepthMax));
        }
        open_.push_back({.container = std::move(container)});
        return true;
    }
    bool close() {
        Json done = std::move(open_.back().container);
        open_.pop_back();
        return add(std::move(done));
    }

    const std::size_t size_;  // Of the text.
    Json root_;
    std::vector<Open> open_;
};

void write_string(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) {
        switch (c) {
            case '"':
                out += "\\\"";
                break;
            case '\\':
                out += "\\\\";
                break;
            case '\n':
                out += "\\n";
                break;
            case '\r':
                out += "\\r";
                break;
            case '\t':
                out += "\\t";
                break;
            default:
                if (static_cast<unsigned char>(c) < 0x20) {
                    out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
                } else {
                    out += c;
                }
        }
    }
    out += '"';
}

void write_double(std::string& out, double value) {
    if (std::isnan(value)) {
        out += "\"NaN\"";
    } else if (std::isinf(value)) {
        out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    } else if (value == 0 && std::signbit(value)) {
        out += "-0.0";  // "-0" would read back as an integer, which has no sign.
    } else {
        out += fmt::format("{}", value);  // The shortest text that reads back as the same double.
    }
}

void start_line(std::string& out, int indent, int depth) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(indent * depth), ' ');
}

void write(std::string& out, const Json& value, int indent, int depth) {
    if (value.is_null()) {
        out += "null";
    } else if (value.is_bool()) {
        out += value.as_bool() ? "true" : "false";
    } else if (value.is_int()) {
        out += fmt::format("{}", value.as_int());
    } else if (value.is_number()) {
        write_double(out, value.as_double());
    } else if (value.is_string()) {
        write_string(out, value.as_string());
    } else if (value.is_array()) {
        out += '[';
        bool first = true;
        for (const Json& item : value.as_array()) {
            if (!first) out += ',';
            first = false;
            start_line(out, indent, depth + 1);
            write(out, item, indent, depth + 1);
        }
        if (!first) start_line(out, indent, depth);
        out += ']';
    } else {
        out += '{';
        bool first = true;
        for (const auto& [key, item] : value.as_object()) {
            if (!first) out += ',';
            first = false;
            start_line(out, indent, depth + 1);
            write_string(out, key);
            out += indent < 0 ? ":" : ": ";
            write(out, item, indent, depth + 1);
        }
        if (!first) start_line(out, indent, depth);
        out += '}';
    }
}

}  // namespace

Json Json::object(std::initializer_list<Member> members) {
    return Json(Object(members));
}

const char* Json::kind() const {
    constexpr std::array kKinds = {"null",     "a boolean", "an integer", "a number",
                                   "a string", "an array",  "an object"};
    return kKinds.at(value_.index());
}

void Json::throw_kind(const char* wanted) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected {} in JSON, found {}", wanted, kind()));
}

bool Json::as_bool() const {
    if (const bool* value = std::get_if<bool>(&value_)) return *value;
    throw_kind("a boolean");
}

std::int64_t Json::as_int() const {
    if (const std::int64_t* value = std::get_if<std::int64_t>(&value_)) return *value;
    const double* value = std::get_if<double>(&value_);
    if (value && std::trunc(*value) == *value && std::abs(*value) < 9e18) {
        return static_cast<std::int64_t>(*value);
    }
    throw_kind("an integer");
}

double Json::as_double() const {
    if (const double* value = std::get_if<double>(&value_)) return *value;
    if (const std::int64_t* value = std::get_if<std::int64_t>(&value_)) {
        return static_cast<double>(*value);
    }
    if (const std::string* text = std::get_if<std::string>(&value_)) {
        if (*text == "NaN") return std::nan("");
        if (*text == "Infinity") return HUGE_VAL;
        if (*text == "-Infinity") return -HUGE_VAL;
    }
    throw_kind("a number");
}

const std::string& Json::as_string() const {
    if (const std::string* value = std::get_if<std::string>(&value_)) return *value;
    throw_kind("a string");
}

const Json::Array& Json::as_array() const {
    if (const Array* value = std::get_if<Array>(&value_)) return *value;
    throw_kind("an array");
}

Json::Array& Json::as_array() {
    if (Array* value = std::get_if<Array>(&value_)) return *value;
    throw_kind("an array");
}

const Json::Object& Json::as_object() const {
    if (const Object* value = std::get_if<Object>(&value_)) return *value;
    throw_kind("an object");
}

Json::Object& Json::as_object() {
    if (Object* value = std::get_if<Object>(&value_)) return *value;
    throw_kind("an object");
}

const Json* Json::find(std::string_view key) const {
    const Object* object = std::get_if<Object>(&value_);
    if (object == nullptr) return nullptr;
    for (const Member& member : *object) {
        if (member.first == key) return member.second.is_null() ? nullptr : &member.second;
    }
    return nullptr;
}

const Json& Json::at(std::string_view key) const {
    if (const Json* value = find(key)) return *value;
    if (!is_object()) throw_kind("an object");
    throw Error(ErrorCode::invalid_argument, fmt::format("missing in JSON: {}", key));
}

std::string Json::get_string(std::string_view key, std::string_view otherwise) const {
    const Json* value = find(key);
    return value ? value->as_string() : std::string(otherwise);
}

std::int64_t Json::get_int(std::string_view key, std::int64_t otherwise) const {
    const Json* value = find(key);
    return value ? value->as_int() : otherwise;
}

double Json::get_double(std::string_view key, double otherwise) const {
    const Json* value = find(key);
    return value ? value->as_double() : otherwise;
}

bool Json::get_bool(std::string_view key, bool otherwise) const {
    const Json* value = find(key);
    return value ? value->as_bool() : otherwise;
}

Json& Json::set(std::string_view key, Json value) {
    if (is_null()) value_ = Object();
    for (Member& member : as_object()) {
        if (member.first == key) return member.second = std::move(value);
    }
    return as_object().emplace_back(std::string(key), std::move(value)).second;
}

void Json::push(Json value) {
    if (is_null()) value_ = Array();
    as_array().push_back(std::move(value));
}

std::string Json::dump(int indent) const {
    std::string out;
    write(out, *this, indent, 0);
    return out;
}

Json Json::parse(std::string_view text) {
    // The parser takes a NUL for the end of the text, and what follows would be lost unread.
    if (const std::size_t at = text.find('\0'); at != std::string_view::npos) {
        throw Error(ErrorCode::invalid_argument, fmt::format("not JSON, at byte {}: a NUL", at));
    }
    Builder builder(text.size());
    nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
    return builder.take();
}

}  // namespace gruca
