// Process 1 of a job's pid namespace, started by gruca-agent and of no use to people. A program of
// its own because every node starts one: it needs few of the agent's libraries, whose loading would
// cost more than all that it does.

#include "agent/keeper.h"
#include "base/clock.h"

int main() {
    const gruca::SystemClock clock;
    return gruca::agent::run_keeper(clock);
}
