#include "service/s3/keys.h"

#include "net/url.h"
#include "service/s3/refusal.h"

namespace gruca::service::s3 {

Keys::Keys(const Request& request) : encodes_(request.parameter("encoding-type") == "url") {
    const std::string type = request.parameter("encoding-type");
    if (!type.empty() && !encodes_) {
        refuse_argument("Invalid Encoding Method specified in Request: " + type);
    }
}

std::string Keys::operator()(const std::string& key) const {
    return encodes_ ? net::percent_encode(key, true) : key;
}

}  // namespace gruca::service::s3
