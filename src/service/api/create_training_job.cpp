#include "service/api/operations.h"

namespace gruca::service::api {
namespace {

constexpr std::size_t kSeedDigits = 16;

}  // namespace

void create_training_job(const Context& context, const Call& call, const Responder& responder) {
    spec::TrainJob job = spec::decode_create_training_job(call.request, context.account);
    const KeyRecord key = make_key(context.random, KeyKind::job, job.name);
    control::CreateJob create{.request = "",
                              .spec = std::move(job),
                              .tags = {},
                              .credentials = {.access_key = key.access_key,
                                              .secret_key = key.secret_key,
                                              .session_token = key.session_token},
                              .seed = context.random.hex_id(kSeedDigits)};
    if (const Json* tags = call.request.find("Tags")) {
        create.tags = spec::decode_tags(*tags, "tags");
    }
    submit_command(context, call, responder, std::move(create));
}

void submit_command(const Context& context, const Call& call, const Responder& responder,
                    control::Input input, const std::string& not_found) {
    context.core.submit(std::move(input), [responder, not_found,
                                           service = call.service](const control::Reply& reply) {
        if (!reply.error) {
            responder.answer(reply.body);
            return;
        }
        Fault fault = fault_of(service, *reply.error, reply.message);
        if (*reply.error == ErrorCode::not_found) fault.code = not_found;
        responder.answer(fault);
    });
}

}  // namespace gruca::service::api
