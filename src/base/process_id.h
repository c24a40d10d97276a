// base/process_id.h
//
// Which process is meant. A pid alone is reused after its process has ended; a pid and the time at
// which the process started are not. For processes that are watched or ended by somebody who is
// not their parent, or who has been restarted since.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace gruca {

struct ProcessId {
    pid_t pid = 0;
    std::uint64_t start = 0;  // Clock ticks since boot.

    std::string to_text() const;  // "4711 123456\n"
    static std::optional<ProcessId> from_text(std::string_view text);
    friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

// Nothing when there is no such process, or only its zombie.
std::optional<ProcessId> process_id_of(pid_t pid);

// A descriptor of exactly that process, readable once it has ended; closed when it is gone.
UniqueFd open_process(const ProcessId& id);

// Whether the process behind the descriptor ended within `patience`.
bool wait_for_end(const UniqueFd& process, std::chrono::milliseconds patience);

// Nothing happens when it has ended.
void signal_process(const UniqueFd& process, int signal);

}  // namespace gruca
