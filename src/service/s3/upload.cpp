#include "service/s3/upload.h"

#include <fmt/format.h>

#include <span>

#include "base/json.h"
#include "service/s3/refusal.h"
#include "service/s3/xml.h"

namespace gruca::service::s3 {

std::string UploadHead::to_text() const {
    Json json = Json::object({{"key", key}, {"attributes", attributes.to_text()}});
    if (algorithm) json.set("algorithm", header_suffix(*algorithm));
    json.set("full", is_full_object);
    return json.dump();
}

UploadHead UploadHead::from_text(const std::string& text) {
    const Json json = Json::parse(text);
    return {.key = json.at("key").as_string(),
            .attributes = Attributes::from_text(json.at("attributes").as_string()),
            .algorithm = algorithm_from(json.get_string("algorithm")),
            .is_full_object = json.get_bool("full")};
}

std::string upload_place_of(const Request& request) {
    const std::string id = request.parameter("uploadId");
    const bool fits =
        id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!fits) refuse(404, "NoSuchUpload", "The specified upload does not exist.");
    return request.bucket() + "/" + id + "/";
}

std::int64_t part_number_of(const Request& request) {
    if (!request.asks("partNumber")) refuse_argument("a part needs a partNumber");
    return request.number("partNumber", 0, 1, kPartNumberMax);
}

std::string part_name(std::int64_t number) {
    return fmt::format("part-{:05}", number);
}

void refuse_no_upload() {
    refuse(404, "NoSuchUpload",
           "The specified upload does not exist. The upload ID may be invalid, or the upload may "
           "have been aborted or completed.");
}

UploadHead read_upload_head(const store::ObjectReader& reader) {
    std::string text(reader.info().bytes, '\0');
    text.resize(reader.read(0, std::as_writable_bytes(std::span(text))));
    return UploadHead::from_text(text);
}

std::optional<UploadHead> find_upload_head(const store::ObjectStore& uploads,
                                           const Request& request) {
    const auto reader = uploads.open(upload_place_of(request) + "head");
    if (!reader) return std::nullopt;
    UploadHead head = read_upload_head(*reader);
    if (head.key != request.key()) {
        refuse(404, "NoSuchUpload", "The specified upload is of another key.");
    }
    return head;
}

UploadHead upload_head_of(const store::ObjectStore& uploads, const Request& request) {
    auto head = find_upload_head(uploads, request);
    if (!head) refuse_no_upload();
    return std::move(*head);
}

}  // namespace gruca::service::s3
