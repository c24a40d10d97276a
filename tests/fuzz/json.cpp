// What Json::parse takes, dump writes so that it is read back the same, on one line or on many.

#include "base/json.h"

#include "fuzz/target.h"

using gruca::Json;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text = gruca::fuzz::text_of(data, size);
    Json value;
    if (!gruca::fuzz::takes([&] { value = Json::parse(text); })) return 0;
    const std::string line = value.dump();
    CHECK(Json::parse(line).dump() == line, "{}", line);
    CHECK(Json::parse(value.dump(2)).dump() == line, "{}", line);
    CHECK(text.find('\0') == std::string::npos, "a NUL was read over");
    gruca::fuzz::takes([&] { value.as_int(); });
    gruca::fuzz::takes([&] { value.as_double(); });
    return 0;
}
