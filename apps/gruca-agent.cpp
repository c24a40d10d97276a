// The supervisor of one node. `gruca-agent --config <file>` runs until the service releases the
// node; `gruca-agent --keeper` is what it starts as process 1 of a job, and of no use to people.

#include <cstdio>
#include <string_view>

#include "agent/keeper.h"
#include "base/clock.h"

int main(int argc, char** argv) {
    const gruca::SystemClock clock;
    if (argc == 2 && std::string_view(argv[1]) == "--keeper")
        return gruca::agent::run_keeper(clock);
    std::fputs("usage: gruca-agent --config <file>\n", stderr);
    return 2;
}
