// bench/figures.h
//
// A measured figure and how it is shown: one line of JSON, or a row of a table. A ratio above 1
// means that ours is better than the peer; a goal counts as a peer named "goal".
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gruca::bench {

struct Beside {
    std::string name;
    double value = 0;
};

struct Figure {
    std::string name;  // "describe_ms_p50"
    double value = 0;
    std::string unit;  // "ms", "jobs/s": more is better exactly when it ends in "/s".
    std::optional<Beside> peer = {};
};

void show(const Figure& figure, bool json);

// Of an unordered sample; `part` is 0.5 for the median, 0.99 for p99.
double percentile(std::vector<double> sample, double part);

}  // namespace gruca::bench
