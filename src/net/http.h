// net/http.h
//
// An HTTP/1.1 message as the rest of the product sees it: plain values, no sockets.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gruca::net {

bool same_header_name(std::string_view a, std::string_view b);  // Without regard to case.

// In the order received. Names compare without regard to case; a name may occur more than once.
class Headers {
  public:
    Headers() = default;
    Headers(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}

    void add(std::string name, std::string value);
    void set(std::string_view name, std::string value);  // Replaces every field of that name.
    void remove(std::string_view name);
    std::optional<std::string> find(std::string_view name) const;  // The first one.
    const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

  private:
    std::vector<std::pair<std::string, std::string>> fields_;
};

struct HttpRequest {
    std::string method;
    std::string target;  // Path and query exactly as sent, still percent-encoded: "/b/k%20x?a=1".
    Headers headers = {};
    std::string body = {};

    std::string_view path() const;   // Up to the '?'.
    std::string_view query() const;  // After the '?', or empty.
};

struct HttpResponse {
    int status = 200;
    Headers headers = {};
    std::string body = {};
};

}  // namespace gruca::net
