#include "service/s3/write_conditions.h"

#include "base/text.h"
#include "service/s3/attributes.h"
#include "service/s3/refusal.h"

namespace gruca::service::s3 {

bool only_if_absent(const Request& request) {
    const auto none = request.header("If-None-Match");
    if (none && trim(*none) != "*") {
        refuse(501, "NotImplemented", "If-None-Match of a put must be *");
    }
    return none.has_value();
}

void require_match(const Request& request, const store::ObjectStore& store) {
    const auto match = request.header("If-Match");
    if (!match) return;
    const auto found = store.find(request.object());
    if (!found) refuse_no_key(request.key());
    if (!matches_etag(*match, attributes_of(*found).etag)) refuse_precondition("If-Match");
}

}  // namespace gruca::service::s3
