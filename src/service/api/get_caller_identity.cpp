#include <fmt/format.h>

#include "service/api/operations.h"

namespace gruca::service::api {

Outcome get_caller_identity(const Context& context, const Call& call) {
    const std::string& account = context.account.account;
    const bool is_job = call.caller.kind == KeyKind::job;
    const std::string arn =
        is_job
            ? fmt::format("arn:aws:sts::{}:assumed-role/gruca-job/{}", account, call.caller.owner)
            : fmt::format("arn:aws:iam::{}:user/{}", account, call.caller.owner);
    const std::string user =
        is_job ? "AROAGRUCAJOB:" + call.caller.owner : std::string("AIDAGRUCAADMIN");
    return Xml{fmt::format(
        "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
        "<GetCallerIdentityResult><Arn>{}</Arn><UserId>{}</UserId><Account>{}</Account>"
        "</GetCallerIdentityResult><ResponseMetadata><RequestId>{}</RequestId></ResponseMetadata>"
        "</GetCallerIdentityResponse>\n",
        xml_escaped(arn), xml_escaped(user), account, call.request_id)};
}

}  // namespace gruca::service::api
