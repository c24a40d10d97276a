#include "service/api/page_token.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "net/sigv4.h"

namespace gruca::service::api {
namespace {

constexpr std::size_t kQueryDigits = 16;

std::string query_of(const Json& request) {
    std::vector<std::string> members;
    for (const auto& [name, value] : request.as_object()) {
        const std::string lower = to_lower(name);
        if (lower == "nexttoken" || lower == "maxresults" || lower == "limit") continue;
        members.push_back(Json(name).dump() + value.dump());
    }
    std::sort(members.begin(), members.end());
    std::string joined;
    for (const std::string& member : members) joined += member + "\n";
    return net::sha256_hex(joined).substr(0, kQueryDigits);
}

[[noreturn]] void refuse() {
    throw Error(ErrorCode::invalid_argument,
                "The NextToken is not valid for this request. Repeat the request that gave it, or "
                "start without one.");
}

}  // namespace

std::string make_page_token(const Json& request, Json place) {
    const Json token = Json::object({{"q", query_of(request)}, {"p", std::move(place)}});
    return base64(bytes_of(token.dump()));
}

Json read_page_token(const Json& request, const std::string& token) {
    const auto bytes = from_base64(token);
    if (!bytes) refuse();
    Json read;
    try {
        read = Json::parse(text_of(*bytes));
    } catch (const Error&) {  // Whatever it is, we did not make it.
        refuse();
    }
    const Json* query = read.find("q");
    const Json* place = read.find("p");
    if (query == nullptr || place == nullptr || *query != Json(query_of(request))) refuse();
    return *place;
}

}  // namespace gruca::service::api
