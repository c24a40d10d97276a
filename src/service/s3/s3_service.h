// service/s3/s3_service.h
//
// The service's store, served as S3: buckets are the first segments of its keys, so what a job
// wrote, what `gruca store` copied and what an S3 client put are the same objects.
//
//   admin   everything
//   job     objects of every bucket, while the job runs; buckets are not its to make or remove
//   node    nothing
//
// Objects are durable when a put, copy or completion is answered. What is supported, and how the
// rest is refused, is docs/reference/s3.md. Thread-safe.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "net/http_stream.h"
#include "net/sigv4_payload.h"
#include "service/api/answer.h"
#include "service/auth/key_ring.h"
#include "service/s3/attributes.h"
#include "service/s3/request.h"
#include "service/s3/upload.h"
#include "service/s3/xml.h"
#include "store/local_store.h"

namespace gruca::service::s3 {

constexpr std::uint64_t kPutBytesMax = 5ull << 30;            // Of one put or one part.
constexpr std::uint64_t kPartBytesMin = 5ull << 20;           // But for the last part.
constexpr auto kUploadAgeMax = std::chrono::hours(7 * 24);    // Then an upload is forgotten,
constexpr auto kForgetUploadsEvery = std::chrono::hours(24);  // when the next one begins.

struct S3Options {
    std::filesystem::path store;    // Of the objects.
    std::filesystem::path uploads;  // Of the parts of uploads not completed; same file system.
    std::string region;
    std::string account;
};

// Whether a request is for objects rather than an AWS call in JSON or as a form.
bool is_for_objects(const net::HttpRequest& head);

class S3Service {
  public:
    // Forgets uploads older than kUploadAgeMax, as forget_uploads_if_due() does from then on. What
    // is referred to outlives this.
    S3Service(S3Options options, const KeyRing& keys, const Clock& clock, Random& random);

    // A stream handler of net::HttpServer.
    void handle(net::HttpStream& stream);

    static net::HttpResponse busy();  // "SlowDown"

    // Called when an upload begins; does something once every kForgetUploadsEvery.
    void forget_uploads_if_due();

  private:
    struct Call;

    void authenticate(Call& call) const;
    void dispatch(Call& call);
    void dispatch_bucket(Call& call);
    void dispatch_object(Call& call);
    void require_bucket(const std::string& bucket) const;

    void list_buckets(Call& call);
    void create_bucket(Call& call);
    void delete_bucket(Call& call);
    void list_objects(Call& call);
    void delete_objects(Call& call);
    std::optional<api::Fault> delete_one(const std::string& bucket,
                                         const DeleteDocument::Object& object);

    void get_object(Call& call);
    void put_object(Call& call);
    void copy_object(Call& call);
    void delete_object(Call& call);

    void create_upload(Call& call);
    void upload_part(Call& call);
    void upload_part_copy(Call& call);
    void complete_upload(Call& call);
    std::optional<Attributes> completed_before(const Request& request) const;
    Attributes make_object(const Request& request, const UploadHead& head,
                           const std::vector<CompletedPart>& wanted);
    Attributes commit_upload(const Request& request, Attributes attributes,
                             store::ObjectWriter& writer);
    void forget_upload(const std::string& place);
    void abort_upload(Call& call);
    void list_parts(Call& call);
    void list_uploads(Call& call);
    void forget_old_uploads();

    // For what may take longer than clients wait: service/s3/slow_answer.h.
    void answer_slowly(const Call& call, const std::function<std::string()>& make);

    std::mutex& mutex_of(const std::string& object);
    // Makes what was written the object, if the conditions of the request hold as it becomes one.
    void commit(const Request& request, store::ObjectWriter& writer);

    const S3Options options_;
    const KeyRing& keys_;
    const Clock& clock_;
    Random& random_;
    store::LocalStore store_;
    store::LocalStore uploads_;
    // Each guards the objects that hash to it between looking at a condition and writing.
    std::array<std::mutex, 64> mutexes_;
    std::mutex forgetting_;  // Guards the member below.
    TimePoint forgotten_at_;
};

}  // namespace gruca::service::s3
