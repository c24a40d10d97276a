// The messages of service, agent and keeper: what is read is written so that it is read the same.

#include "agent/keeper_order.h"
#include "fuzz/target.h"
#include "spec/node.h"
#include "spec/train_job.h"

using gruca::Json;

namespace {

template <class Message>
void check(const Json& json) {
    gruca::fuzz::takes([&] {
        const std::string written = Message::from_json(json).to_json().dump();
        CHECK(Message::from_json(Json::parse(written)).to_json().dump() == written, "{}", written);
    });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Json json;
    if (!gruca::fuzz::takes([&] { json = Json::parse(gruca::fuzz::text_of(data, size)); })) {
        return 0;
    }
    check<gruca::spec::NodeConfig>(json);
    check<gruca::spec::NodeOrder>(json);
    check<gruca::spec::NodeReport>(json);
    check<gruca::spec::Task>(json);
    check<gruca::spec::TrainJob>(json);
    check<gruca::agent::KeeperOrder>(json);
    check<gruca::agent::Ending>(json);
    gruca::fuzz::takes([&] {
        const auto network = gruca::agent::KeeperNetwork::from_json(json);
        CHECK(network.prefix >= 0 && network.prefix <= 32, "a mask of {} bits", network.prefix);
    });
    return 0;
}
