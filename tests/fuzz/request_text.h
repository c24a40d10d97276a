// A request as a target takes it: a line of method and target, lines of headers, an empty line, a
// body. More is possible than the server lets through.
#pragma once

#include <algorithm>
#include <string_view>

#include "net/http.h"

namespace gruca::fuzz {

inline net::HttpRequest request_of(std::string_view text) {
    net::HttpRequest request;
    const auto take_line = [&] {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        return line;
    };
    const std::string_view first = take_line();
    const std::size_t blank = std::min(first.find(' '), first.size());
    request.method = first.substr(0, blank);
    request.target = first.substr(std::min(blank + 1, first.size()));
    for (std::string_view line = take_line(); !line.empty(); line = take_line()) {
        const std::size_t colon = std::min(line.find(':'), line.size());
        request.headers.add(std::string(line.substr(0, colon)),
                            std::string(line.substr(std::min(colon + 1, line.size()))));
    }
    request.body = text;
    return request;
}

}  // namespace gruca::fuzz
