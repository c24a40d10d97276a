#include "cli/aws_api.h"

#include "base/error.h"
#include "net/aws_client.h"

namespace gruca::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

std::string between(const std::string& text, const std::string& open, const std::string& close) {
    const std::size_t begin = text.find(open);
    if (begin == std::string::npos) return "";
    const std::size_t from = begin + open.size();
    return text.substr(from, text.find(close, from) - from);
}

class AwsApi final : public Api {
  public:
    AwsApi(const Installation& service, bool patient, const Clock& clock,
           std::function<bool()> cancelled)
        : client_({.origin = service.endpoint,
                   .region = service.region,
                   .credentials = service.credentials,
                   .retry_for = patient ? std::chrono::milliseconds(kPatience)
                                        : std::chrono::milliseconds(0)},
                  clock),
          cancelled_(std::move(cancelled)) {}

    Json call(const std::string& target, const Json& request) override {
        return client_.call(target, request, {}, cancelled_);
    }

    std::string caller_arn() override {
        const std::string answer =
            client_.call_form("sts", "Action=GetCallerIdentity&Version=2011-06-15");
        return between(answer, "<Arn>", "</Arn>");
    }

  private:
    net::AwsClient client_;
    const std::function<bool()> cancelled_;
};

}  // namespace

std::unique_ptr<Api> connect_to(const Installation& service, bool patient, const Clock& clock,
                                std::function<bool()> cancelled) {
    return std::make_unique<AwsApi>(service, patient, clock, std::move(cancelled));
}

}  // namespace gruca::cli
