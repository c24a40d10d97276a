#include "base/text.h"
#include "spec/train_job.h"

namespace gruca::spec {
namespace {

// "families: sizes" of the enum TrainingInstanceType.
constexpr std::string_view kFamilies[] = {
    "m4: xlarge 2xlarge 4xlarge 10xlarge 16xlarge",
    "g4dn: xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge",
    "m5: large xlarge 2xlarge 4xlarge 12xlarge 24xlarge",
    "c4: xlarge 2xlarge 4xlarge 8xlarge",
    "p2: xlarge 8xlarge 16xlarge",
    "p3: 2xlarge 8xlarge 16xlarge",
    "p3dn p4d p4de: 24xlarge",
    "p5: 4xlarge 48xlarge",
    "p5e p5en p6-b200 p6-b300: 48xlarge",
    "p6e-gb200: 36xlarge",
    "c5 c5n: xlarge 2xlarge 4xlarge 9xlarge 18xlarge",
    "g5 g6 g6e: xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge",
    "g7 g7e: 2xlarge 4xlarge 8xlarge 12xlarge 24xlarge 48xlarge",
    "trn1: 2xlarge 32xlarge",
    "trn1n: 32xlarge",
    "trn2: 48xlarge",
    "m6i: large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge",
    "c6i: xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge",
    "r5d r5: large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge",
    "t3: medium large xlarge 2xlarge",
    "c7i m7i r7i: large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge",
};

std::vector<std::string> expand() {
    std::vector<std::string> types;
    for (const std::string_view line : kFamilies) {
        const auto halves = split(line, ':');
        for (const std::string& family : split(halves.at(0), ' ')) {
            for (const std::string& size : split(trim(halves.at(1)), ' ')) {
                types.push_back("ml." + family + "." + size);
            }
        }
    }
    return types;
}

}  // namespace

const std::vector<std::string>& training_instance_types() {
    static const std::vector<std::string> types = expand();
    return types;
}

}  // namespace gruca::spec
