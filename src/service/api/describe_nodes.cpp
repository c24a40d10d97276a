#include "service/api/operations.h"
#include "service/api/request.h"

namespace gruca::service::api {
namespace {

Json describe(const control::Node& node) {
    const spec::NodeReport& report = node.report;
    return Json::object({{"Host", node.host},
                         {"NodeId", node.id},
                         {"Address", node.address},
                         {"Phase", spec::name(report.phase)},
                         {"Ended", report.ended},
                         {"ExitCode", report.exit_code},
                         {"ExitSignal", report.exit_signal},
                         {"Failure", report.failure},
                         {"FailureKind", report.failure_kind},
                         {"Lost", node.lost},
                         {"LostWhy", node.lost_why},
                         {"Gone", node.gone},
                         {"StuckWhy", node.stuck_why}});
}

}  // namespace

Outcome describe_nodes(const Context& context, const Call& call) {
    RequestReader read(call.request);
    const std::string name = read.text("TrainingJobName", job_name_rule());
    read.finish();
    const JobPtr job = context.jobs.find(name);
    if (!job) {
        return Fault{.code = "ResourceNotFound", .message = "Requested resource not found."};
    }
    Json nodes = Json::array();
    for (const control::Node& node : job->nodes) nodes.push(describe(node));
    return Json::object({{"Nodes", nodes}});
}

}  // namespace gruca::service::api
