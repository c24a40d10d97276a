#include "net/http.h"

#include <algorithm>

namespace gruca::net {
bool same_header_name(std::string_view a, std::string_view b) {
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](char x, char y) { return lower(x) == lower(y); });
}

void Headers::add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
}

void Headers::set(std::string_view name, std::string value) {
    remove(name);
    fields_.emplace_back(std::string(name), std::move(value));
}

void Headers::remove(std::string_view name) {
    std::erase_if(fields_, [&](const auto& field) { return same_header_name(field.first, name); });
}

std::optional<std::string> Headers::find(std::string_view name) const {
    const auto found = std::find_if(fields_.begin(), fields_.end(), [&](const auto& field) {
        return same_header_name(field.first, name);
    });
    if (found == fields_.end()) return std::nullopt;
    return found->second;
}

std::string_view HttpRequest::path() const {
    return std::string_view(target).substr(0, target.find('?'));
}

std::string_view HttpRequest::query() const {
    const std::size_t mark = target.find('?');
    return mark == std::string::npos ? std::string_view()
                                     : std::string_view(target).substr(mark + 1);
}

}  // namespace gruca::net
