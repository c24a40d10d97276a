// What service/s3/s3_service.h promises without being asked by a client. The rest is in tests/e2e.

#include "service/s3/s3_service.h"

#include <gtest/gtest.h>

#include "base/temp_dir.h"

namespace gruca::service::s3 {
namespace {

TEST(S3ServiceTest, uploads_that_grow_old_while_the_service_runs_are_forgotten_once_a_day) {
    const TempDir scratch;
    const std::filesystem::path uploads = scratch.path() / "uploads";
    const KeyRing keys{{}};
    SystemRandom random;
    ManualClock clock(SystemClock().now());  // Files have the times of the machine.
    S3Service service({.store = scratch.path() / "store",
                       .uploads = uploads,
                       .region = "eu-central-1",
                       .account = "000000000000"},
                      keys, clock, random);
    store::LocalStore parts(uploads);
    const auto begin = [&](const std::string& id) {
        parts.put("bucket/" + id + "/head", "{}");
        parts.put("bucket/" + id + "/part-00001", "bytes");
    };
    begin("old");
    clock.advance(kForgetUploadsEvery);
    service.forget_uploads_if_due();
    EXPECT_TRUE(parts.find("bucket/old/part-00001")) << "it is a day old";
    clock.advance(kUploadAgeMax - kForgetUploadsEvery + std::chrono::minutes(1));
    service.forget_uploads_if_due();
    EXPECT_FALSE(parts.find("bucket/old/part-00001"));
    EXPECT_FALSE(parts.find("bucket/old/head"));

    begin("next");
    clock.advance(kForgetUploadsEvery - std::chrono::minutes(1));
    service.forget_uploads_if_due();
    EXPECT_TRUE(parts.find("bucket/next/head")) << "not twice a day";
    clock.advance(std::chrono::minutes(1));
    service.forget_uploads_if_due();
    EXPECT_FALSE(parts.find("bucket/next/head"));
}

}  // namespace
}  // namespace gruca::service::s3
