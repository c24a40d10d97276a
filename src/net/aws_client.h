// net/aws_client.h
//
// Calls an operation of the service the way AWS SDKs do: POST /, JSON 1.1, X-Amz-Target, SigV4.
// The CLI and the agent are clients like any other.
//
// An AWS error comes back as Error with the code that fits its name, and message
// "<AWS code>: <message>", for a 5xx with the request's id. unavailable, throttling and 5xx are
// retried with back-off and jitter up to `retry_for`; every attempt is signed anew.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "net/http_client.h"
#include "net/sigv4.h"

namespace gruca::net {

struct AwsClientOptions {
    std::string origin;  // "http://127.0.0.1:7717"
    std::string region;
    Credentials credentials;
    std::chrono::milliseconds retry_for = std::chrono::seconds(0);
};

class AwsClient {
  public:
    AwsClient(AwsClientOptions options, const Clock& clock);

    // `target` is "SageMaker.DescribeTrainingJob"; its part before the dot chooses the signing
    // name.
    Json call(const std::string& target, const Json& request,
              std::optional<std::chrono::milliseconds> timeout = {},
              const std::function<bool()>& cancelled = {});

    // As call, with a body of bytes and extra headers instead of JSON. For Gruca.AppendLog.
    Json call_raw(const std::string& target, std::string body, const Headers& extra);

    // For the services that speak forms and XML, as STS: "Action=GetCallerIdentity&Version=..." in,
    // the document as it came out.
    std::string call_form(const std::string& service, std::string form);

  private:
    struct Call;
    std::string send(Call call);

    const AwsClientOptions options_;
    const Clock& clock_;
    HttpClient http_;
};

}  // namespace gruca::net
