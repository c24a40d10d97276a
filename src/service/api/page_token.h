// service/api/page_token.h
//
// Opaque tokens of paged lists. A token carries where the next page begins and which query it
// belongs to; with another query it is refused.
#pragma once

#include <string>

#include "base/json.h"

namespace gruca::service::api {

// `request` without its paging members stands for the query.
std::string make_page_token(const Json& request, Json place);
// The place. Throws invalid_argument for a token that we did not make for this query.
Json read_page_token(const Json& request, const std::string& token);

}  // namespace gruca::service::api
