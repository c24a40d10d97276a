#include "service/s3/known.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "service/s3/refusal.h"

namespace gruca::service::s3 {
namespace {

// Sub-resources whose absence is an answer of its own.
struct NeverThere {
    const char* name;
    const char* error;
};
constexpr NeverThere kNeverThere[] = {
    {"cors", "NoSuchCORSConfiguration"},
    {"encryption", "ServerSideEncryptionConfigurationNotFoundError"},
    {"legal-hold", "NoSuchObjectLockConfiguration"},
    {"lifecycle", "NoSuchLifecycleConfiguration"},
    {"object-lock", "ObjectLockConfigurationNotFoundError"},
    {"ownershipControls", "OwnershipControlsNotFoundError"},
    {"policy", "NoSuchBucketPolicy"},
    {"policyStatus", "NoSuchBucketPolicy"},
    {"publicAccessBlock", "NoSuchPublicAccessBlockConfiguration"},
    {"replication", "ReplicationConfigurationNotFoundError"},
    {"retention", "NoSuchObjectLockConfiguration"},
    {"tagging", "NoSuchTagSet"},
    {"website", "NoSuchWebsiteConfiguration"},
};

enum Level : unsigned { service = 1, bucket = 2, object = 4 };
enum Method : unsigned { get = 1, head = 2, put = 4, post = 8, del = 16 };

struct Known {
    const char* name;
    unsigned levels;
    unsigned methods;
};
constexpr Known kKnown[] = {
    {"bucket-region", service, get},
    {"continuation-token", service | bucket, get},
    {"delete", bucket, post},
    {"delimiter", bucket, get},
    {"encoding-type", bucket | object, get},
    {"fetch-owner", bucket, get},
    {"key-marker", bucket, get},
    {"list-type", bucket, get},
    {"location", bucket, get},
    {"marker", bucket, get},
    {"max-buckets", service, get},
    {"max-keys", bucket, get},
    {"max-parts", object, get},
    {"max-uploads", bucket, get},
    {"part-number-marker", object, get},
    {"partNumber", object, get | head | put},
    {"prefix", service | bucket, get},
    {"response-cache-control", object, get | head},
    {"response-content-disposition", object, get | head},
    {"response-content-encoding", object, get | head},
    {"response-content-language", object, get | head},
    {"response-content-type", object, get | head},
    {"response-expires", object, get | head},
    {"start-after", bucket, get},
    {"upload-id-marker", bucket, get},
    {"uploadId", object, get | put | post | del},
    {"uploads", bucket, get},
    {"uploads", object, post},
    {"versionId", object, get | head | put | post | del},
    {"versioning", bucket, get},
};

// Headers, which SDKs may also write into a signed URL, that make another operation of a put or a
// delete.
constexpr std::string_view kRefusedHeaders[] = {
    "x-amz-if-match-last-modified-time",
    "x-amz-if-match-size",
    "x-amz-rename-source",
    "x-amz-write-offset-bytes",
};

[[noreturn]] void refuse_by_name(std::string_view name) {
    refuse(501, "NotImplemented", "gruca does not have this: " + repair_utf8(name));
}

unsigned method_of(const Request& request) {
    constexpr std::pair<std::string_view, Method> kMethods[] = {
        {"GET", get}, {"HEAD", head}, {"PUT", put}, {"POST", post}, {"DELETE", del}};
    for (const auto& [name, method] : kMethods) {
        if (request.method() == name) return method;
    }
    return 0;
}

bool is_of_signature(std::string_view name) {
    return name == "AWSAccessKeyId" || name == "Signature" || name == "Expires";
}

}  // namespace

void require_known(const Request& request) {
    const Level level = request.bucket().empty() ? service
                        : request.key().empty()  ? bucket
                                                 : object;
    const unsigned method = method_of(request);
    for (const auto& [name, value] : request.query()) {
        const auto never = std::find_if(std::begin(kNeverThere), std::end(kNeverThere),
                                        [&](const NeverThere& one) { return one.name == name; });
        if (method == get && never != std::end(kNeverThere)) {
            refuse(404, never->error, "This has no " + name + ".");
        }
        const std::string lower = to_lower(name);
        if (lower == "x-amz-copy-source" ||
            std::find(std::begin(kRefusedHeaders), std::end(kRefusedHeaders), lower) !=
                std::end(kRefusedHeaders)) {
            refuse_by_name(name);
        }
        const bool is_known =
            lower.starts_with("x-") || is_of_signature(name) ||
            std::any_of(std::begin(kKnown), std::end(kKnown), [&](const Known& one) {
                return one.name == name && (one.levels & level) != 0 && (one.methods & method) != 0;
            });
        if (!is_known) refuse_by_name(name);
    }
    for (const std::string_view name : kRefusedHeaders) {
        if (request.header(name)) refuse_by_name(name);
    }
    if (request.parameter("versionId", "null") != "null") {
        refuse(501, "NotImplemented", "There are no versions of objects.");
    }
}

}  // namespace gruca::service::s3
