// Worlds made from seeds. The fast run takes 20; more with --seeds N or GRUCA_SIM_SEEDS=N, from
// another start with --first K or GRUCA_SIM_FIRST=K. A seed that fails is printed: run it alone
// with --first K --seeds 1.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "sim/world.h"

namespace gruca::sim {
namespace {

std::uint64_t first_seed = 1;
std::uint64_t seeds = 20;

constexpr int kBrokenShownMax = 10;

TEST(Simulation, the_promises_of_control_hold_in_every_world) {
    Census census;
    int broken = 0;
    for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
        World world(seed);
        try {
            world.run();
        } catch (const Broken& error) {
            ADD_FAILURE() << error.what();
            if (++broken == kBrokenShownMax) break;
        }
        for (const auto& [what, count] : world.census()) census[what] += count;
    }
    for (const auto& [what, count] : census) std::cout << what << " " << count << "\n";
    if (seeds < 20) return;
    for (const char* what : {"Completed", "Failed", "Stopped", "MaxRuntimeExceeded", "crash",
                             "unheard", "death", "cut", "silent", "stuck", "refused", "recalled"}) {
        EXPECT_GT(census[what], 0) << "no world saw this: " << what;
    }
}

}  // namespace

void set_from(const char* text, std::uint64_t& value) {
    if (text != nullptr) value = std::strtoull(text, nullptr, 10);
}

}  // namespace gruca::sim

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    using namespace gruca::sim;
    set_from(std::getenv("GRUCA_SIM_FIRST"), first_seed);
    set_from(std::getenv("GRUCA_SIM_SEEDS"), seeds);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::string(argv[i]) == "--first") set_from(argv[i + 1], first_seed);
        if (std::string(argv[i]) == "--seeds") set_from(argv[i + 1], seeds);
    }
    return RUN_ALL_TESTS();
}
