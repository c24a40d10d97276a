#include "service/api/operations.h"
#include "service/api/request.h"

namespace gruca::service::api {

void stop_training_job(const Context& context, const Call& call, const Responder& responder) {
    RequestReader read(call.request);
    const std::string name = read.text("TrainingJobName", job_name_rule());
    read.finish();
    submit_command(context, call, responder, control::StopJob{.request = "", .name = name});
}

}  // namespace gruca::service::api
