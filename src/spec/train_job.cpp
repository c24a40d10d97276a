#include "spec/train_job.h"

#include <fmt/format.h>

#include "spec/parts.h"

namespace gruca::spec {

Json JobCredentials::to_json() const {
    return Json::object(
        {{"access_key", access_key}, {"secret_key", secret_key}, {"session_token", session_token}});
}

JobCredentials JobCredentials::from_json(const Json& json) {
    return {.access_key = json.at("access_key").as_string(),
            .secret_key = json.at("secret_key").as_string(),
            .session_token = json.at("session_token").as_string()};
}

std::string TrainJob::output_uri() const {
    return fmt::format("{}/{}/output", output_path, name);
}

std::string TrainJob::artifacts_uri() const {
    return output_uri() + (compress_output ? "/model.tar.gz" : "/model/");
}

Json TrainJob::to_json() const {
    Json json = Json::object({{"name", name},
                              {"arn", arn},
                              {"image", image},
                              {"entrypoint", spec::to_json(entrypoint)},
                              {"arguments", spec::to_json(arguments)},
                              {"channels", spec::to_json(channels)},
                              {"hyperparameters", hyperparameters},
                              {"environment", environment},
                              {"output_path", output_path},
                              {"compress_output", compress_output},
                              {"instance_type", instance_type},
                              {"instance_count", instance_count},
                              {"max_runtime_s", max_runtime_s},
                              {"isolated", isolated},
                              {"echo", echo}});
    if (checkpoint) json.set("checkpoint", spec::to_json(*checkpoint));
    return json;
}

TrainJob TrainJob::from_json(const Json& json) {
    TrainJob job;
    job.name = json.at("name").as_string();
    job.arn = json.at("arn").as_string();
    job.image = json.at("image").as_string();
    job.entrypoint = texts_from_json(json.at("entrypoint"));
    job.arguments = texts_from_json(json.at("arguments"));
    job.channels = channels_from_json(json.at("channels"));
    job.hyperparameters = json.at("hyperparameters");
    job.environment = json.at("environment");
    job.output_path = json.at("output_path").as_string();
    job.compress_output = json.at("compress_output").as_bool();
    if (const Json* given = json.find("checkpoint")) job.checkpoint = checkpoint_from_json(*given);
    job.instance_type = json.at("instance_type").as_string();
    job.instance_count = int32_from(json.at("instance_count"));
    job.max_runtime_s = json.at("max_runtime_s").as_int();
    job.isolated = json.get_bool("isolated");
    job.echo = json.at("echo");
    return job;
}

}  // namespace gruca::spec
