#include "s3_speed.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "net/http_client.h"

namespace gruca::bench {
namespace {

constexpr int kWarmUp = 1;  // Objects before the clock starts.

std::string random_bytes(std::size_t count) {
    const Philox chance(1, 0);
    std::string bytes(count, '\0');
    for (std::size_t i = 0; i + 8 <= count; i += 8) {
        const std::uint64_t word = chance.u64(i / 8);
        std::copy_n(reinterpret_cast<const char*>(&word), 8, bytes.data() + i);
    }
    return bytes;
}

class S3Client {
  public:
    S3Client(std::string origin, net::Credentials credentials)
        : origin_(std::move(origin)), credentials_(std::move(credentials)) {}

    net::HttpResponse send(const std::string& method, const std::string& path, std::string body) {
        net::HttpRequest request{.method = method,
                                 .target = path,
                                 .headers = {{"Host", origin_.substr(7)}},
                                 .body = std::move(body)};
        net::sign(request, credentials_, {.region = "us-east-1", .service = "s3"}, clock_.now());
        net::HttpResponse response = http_.send(origin_, request);
        if (response.status < 300) return response;
        throw Error(ErrorCode::internal, fmt::format("{} {} answers {}: {}", method, path,
                                                     response.status, response.body));
    }

  private:
    const std::string origin_;
    const net::Credentials credentials_;
    const SystemClock clock_;
    net::HttpClient http_;
};

template <class Act>
double mb_per_s(int objects, std::size_t bytes, const Act& act) {
    const SystemClock clock;
    for (int i = 0; i < kWarmUp; ++i) act(i);
    const auto begin = clock.steady_now();
    for (int i = 0; i < objects; ++i) act(i);
    const std::chrono::duration<double> time = clock.steady_now() - begin;
    return objects * static_cast<double>(bytes) / 1e6 / time.count();
}

}  // namespace

S3Speed measure_s3(const std::string& origin, const net::Credentials& credentials, int objects,
                   int mib) {
    const std::size_t bytes = static_cast<std::size_t>(mib) << 20;
    const std::string content = random_bytes(bytes);
    S3Client client(origin, credentials);
    client.send("PUT", "/bench-speed", "");
    const auto path = [](int i) { return fmt::format("/bench-speed/object-{}", i); };
    S3Speed speed;
    speed.put_mb_per_s =
        mb_per_s(objects, bytes, [&](int i) { client.send("PUT", path(i), content); });
    speed.get_mb_per_s = mb_per_s(objects, bytes, [&](int i) {
        CHECK(client.send("GET", path(i), "").body == content, "an object came back changed");
    });
    return speed;
}

}  // namespace gruca::bench
