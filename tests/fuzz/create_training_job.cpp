// CreateTrainingJob: what is taken survives being stored, and what Describe would echo is a request
// that means the same.

#include "base/text.h"
#include "fuzz/target.h"
#include "spec/train_job.h"

namespace spec = gruca::spec;
using gruca::Json;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const spec::AccountFacts account{.region = "us-east-1", .account = "000000000000"};
    gruca::fuzz::takes([&] {
        const Json request = Json::parse(gruca::fuzz::text_of(data, size));
        if (const Json* tags = request.find("Tags")) {
            gruca::fuzz::takes([&] { spec::decode_tags(*tags, "tags"); });
        }
        const spec::TrainJob job = spec::decode_create_training_job(request, account);
        const std::string stored = job.to_json().dump();
        CHECK(spec::TrainJob::from_json(Json::parse(stored)).to_json().dump() == stored, "{}",
              stored);
        const spec::TrainJob again = spec::decode_create_training_job(job.echo, account);
        CHECK(again.to_json().dump() == stored, "{}\n{}", again.to_json().dump(), stored);
        for (const std::string& word : {job.name, job.output_path}) {
            CHECK(word.find('\0') == std::string::npos && word.find('\n') == std::string::npos,
                  "a name with a control character: {}", word);
        }
        CHECK(job.name.find('/') == std::string::npos && !job.name.starts_with('-'), "{}",
              job.name);
    });
    return 0;
}
