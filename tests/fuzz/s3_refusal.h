// Whether `decode` took its input, as fuzz::takes, for decoders that refuse with an S3 Refusal: it
// is the client's fault, and it has a name.
#pragma once

#include "fuzz/target.h"
#include "service/s3/refusal.h"

namespace gruca::fuzz {

template <class Decode>
bool takes_or_refuses(Decode&& decode) {
    try {
        return takes(decode);
    } catch (const service::s3::Refusal& refusal) {
        const auto& fault = refusal.fault;
        CHECK(fault.status >= 400 && fault.status < 502 && fault.status != 500, "{}", fault.status);
        CHECK(!fault.code.empty() && !fault.message.empty(), "refused without a word");
        return false;
    }
}

}  // namespace gruca::fuzz
