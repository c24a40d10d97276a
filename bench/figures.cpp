#include "figures.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace gruca::bench {
namespace {

std::string machine() {
    std::string model = "unknown processor";
    for (const std::string& line : split(read_file("/proc/cpuinfo"), '\n')) {
        if (!line.starts_with("model name")) continue;
        model = trim(std::string_view(line).substr(line.find(':') + 1));
        break;
    }
    utsname system = {};
    ::uname(&system);
    return fmt::format("{}, {} cores, Linux {}", model, std::thread::hardware_concurrency(),
                       system.release);
}

double rounded(double value) {
    return std::round(value * 1000) / 1000;
}

}  // namespace

void show(const Figure& figure, bool json) {
    double ratio = 0;
    if (figure.peer) {
        ratio = figure.unit.ends_with("/s") ? figure.value / figure.peer->value
                                            : figure.peer->value / figure.value;
    }
    if (json) {
        Json row = Json::object({{"figure", figure.name},
                                 {"value", rounded(figure.value)},
                                 {"unit", figure.unit},
                                 {"peer", nullptr},
                                 {"peer_value", nullptr},
                                 {"ratio", nullptr}});
        if (figure.peer) {
            row.set("peer", figure.peer->name);
            row.set("peer_value", rounded(figure.peer->value));
            row.set("ratio", rounded(ratio));
        }
        row.set("machine", machine());
        std::puts(row.dump().c_str());
    } else {
        std::string beside;
        if (figure.peer) {
            beside = fmt::format("   {}: {:.2f}, ratio {:.2f}", figure.peer->name,
                                 figure.peer->value, ratio);
        }
        fmt::print("{:30} {:10.2f} {}{}\n", figure.name, figure.value, figure.unit, beside);
    }
    std::fflush(stdout);
}

double percentile(std::vector<double> sample, double part) {
    CHECK(!sample.empty(), "nothing was measured");
    std::sort(sample.begin(), sample.end());
    const double place = part * static_cast<double>(sample.size() - 1);
    return sample[static_cast<std::size_t>(std::lround(place))];
}

}  // namespace gruca::bench
