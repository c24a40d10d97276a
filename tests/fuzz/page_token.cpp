// The tokens of paged lists: a line of a request, then a token that came with it. A token of ours
// is good for its query alone; a stranger's is the caller's fault.

#include "service/api/page_token.h"

#include "fuzz/target.h"

namespace api = gruca::service::api;
using gruca::Json;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text = gruca::fuzz::text_of(data, size);
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string token = text.substr(std::min(end + 1, text.size()));
    Json request;
    if (!gruca::fuzz::takes([&] { request = Json::parse(text.substr(0, end)); })) return 0;
    if (!request.is_object()) return 0;  // As the router sees to.

    Json place = Json::object({{"from", token.size()}});
    gruca::fuzz::takes([&] { place = api::read_page_token(request, token); });
    const std::string made = api::make_page_token(request, place);
    CHECK(api::read_page_token(request, made) == place, "another place: {}", made);

    Json next = request;
    for (const char* member : {"NextToken", "nextToken", "MaxResults", "limit"}) {
        next.set(member, made);
    }
    CHECK(api::read_page_token(next, made) == place, "the token changes its query: {}", made);

    Json other = request;
    std::string name = "Another";
    while (other.find(name) != nullptr) name += '_';
    other.set(name, true);
    CHECK(!gruca::fuzz::takes([&] { api::read_page_token(other, made); }),
          "good for another query: {}", made);
    return 0;
}
