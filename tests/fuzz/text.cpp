// Encodings of bytes: what is encoded is decoded to the same, and repaired text is UTF-8.

#include "base/text.h"

#include <algorithm>

#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text = gruca::fuzz::text_of(data, size);
    const auto same = [](const std::vector<std::byte>& bytes, std::string_view as) {
        return std::ranges::equal(bytes, gruca::bytes_of(as));
    };
    const auto decoded = gruca::from_base64(gruca::base64(gruca::bytes_of(text)));
    CHECK(decoded && same(*decoded, text), "base64");
    if (const auto bytes = gruca::from_base64(text)) {
        CHECK(bytes->size() <= text.size(), "base64 grew");
    }
    const std::string repaired = gruca::repair_utf8(text);
    CHECK(gruca::is_utf8(repaired), "not repaired");
    CHECK((repaired == text) == gruca::is_utf8(text), "repaired what was whole, or not");
    return 0;
}
