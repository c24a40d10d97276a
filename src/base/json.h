// base/json.h
//
// A JSON value: small, copyable, compared by content. Objects keep the order in which their members
// were written, so what a client sent is echoed as it was sent. The parser behind it stays in
// json.cpp.
//
//   Json job = Json::parse(body);
//   std::string name = job.at("TrainingJobName").as_string();
//   Json reply = Json::object({{"TrainingJobArn", arn}});
//
// Accessors of the wrong kind throw invalid_argument and say what was there. Thread-compatible.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace gruca {

class Json {
  public:
    using Array = std::vector<Json>;
    using Member = std::pair<std::string, Json>;
    using Object = std::vector<Member>;

    Json() = default;  // null
    Json(std::nullptr_t) {}
    Json(bool value) : value_(value) {}
    template <class Integer>
    requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>) Json(Integer value)
        : value_(static_cast<std::int64_t>(value)) {}
    Json(double value) : value_(value) {}
    Json(std::string value) : value_(std::move(value)) {}
    Json(std::string_view value) : value_(std::string(value)) {}
    Json(const char* value) : value_(std::string(value)) {}
    Json(Array value) : value_(std::move(value)) {}

    static Json object(std::initializer_list<Member> members = {});
    static Json array(std::initializer_list<Json> items = {}) { return Json(Array(items)); }

    bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
    bool is_bool() const { return std::holds_alternative<bool>(value_); }
    bool is_int() const { return std::holds_alternative<std::int64_t>(value_); }
    bool is_number() const { return is_int() || std::holds_alternative<double>(value_); }
    bool is_string() const { return std::holds_alternative<std::string>(value_); }
    bool is_array() const { return std::holds_alternative<Array>(value_); }
    bool is_object() const { return std::holds_alternative<Object>(value_); }

    bool as_bool() const;
    std::int64_t as_int() const;  // A double with a whole value counts as an integer.
    double as_double() const;
    const std::string& as_string() const;
    const Array& as_array() const;
    Array& as_array();
    const Object& as_object() const;
    Object& as_object();

    // The member of that name, or nullptr: also when this is not an object or the member is null.
    const Json* find(std::string_view key) const;
    const Json& at(std::string_view key) const;  // Throws invalid_argument when absent.
    // With a default: for members that may be left out. A member of the wrong kind throws.
    std::string get_string(std::string_view key, std::string_view otherwise = "") const;
    std::int64_t get_int(std::string_view key, std::int64_t otherwise = 0) const;
    double get_double(std::string_view key, double otherwise = 0) const;
    bool get_bool(std::string_view key, bool otherwise = false) const;

    // Replaces or appends a member. This must be an object or null, which becomes one.
    Json& set(std::string_view key, Json value);
    // Appends to an array. This must be an array or null, which becomes one.
    void push(Json value);

    // One line without blanks; `indent` >= 0 spreads it over lines. Doubles keep their exact value;
    // NaN and infinities are written as the strings "NaN", "Infinity", "-Infinity", as AWS does.
    std::string dump(int indent = -1) const;

    // Throws invalid_argument with the position. Deeper than kDepthMax is refused, as is anything
    // after the value. Of two members with one name, the last counts.
    static Json parse(std::string_view text);
    static constexpr int kDepthMax = 100;

    friend bool operator==(const Json&, const Json&) = default;

  private:
    explicit Json(Object value) : value_(std::move(value)) {}
    const char* kind() const;
    [[noreturn]] void throw_kind(const char* wanted) const;

    std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

}  // namespace gruca
