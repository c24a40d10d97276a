#include "base/process_id.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace gruca {

std::string ProcessId::to_text() const {
    return std::to_string(pid) + " " + std::to_string(start) + "\n";
}

std::optional<ProcessId> ProcessId::from_text(std::string_view text) {
    const std::vector<std::string> words = split(trim(text), ' ');
    if (words.size() != 2) return std::nullopt;
    const auto pid = parse_int(words[0]);
    const auto start = parse_int(words[1]);
    if (!pid || !start || *pid <= 0 || *start < 0) return std::nullopt;
    return ProcessId{.pid = static_cast<pid_t>(*pid), .start = static_cast<std::uint64_t>(*start)};
}

std::optional<ProcessId> process_id_of(pid_t pid) {
    std::string stat;
    try {
        stat = read_file("/proc/" + std::to_string(pid) + "/stat", 64u << 10);
    } catch (const Error&) {  // Gone, also in the middle of the read: an outcome here.
        return std::nullopt;
    }
    // The second word is the program's name in brackets and may hold anything, brackets too.
    const std::size_t name_end = stat.rfind(") ");
    if (name_end == std::string::npos) return std::nullopt;
    const std::vector<std::string> words = split(std::string_view(stat).substr(name_end + 2), ' ');
    constexpr std::size_t kState = 0, kStart = 19;
    if (words.size() <= kStart || words[kState] == "Z" || words[kState] == "X") return std::nullopt;
    return ProcessId::from_text(std::to_string(pid) + " " + words[kStart]);
}

UniqueFd open_process(const ProcessId& id) {
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, id.pid, 0)));
    // Asked after opening: from now on the descriptor cannot change its process.
    if (!process.is_open() || process_id_of(id.pid) != id) return UniqueFd();
    return process;
}

bool wait_for_end(const UniqueFd& process, std::chrono::milliseconds patience) {
    if (!process.is_open()) return true;
    pollfd watched{.fd = process.get(), .events = POLLIN, .revents = 0};
    return ::poll(&watched, 1, static_cast<int>(patience.count())) > 0;
}

void signal_process(const UniqueFd& process, int signal) {
    if (process.is_open()) ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

}  // namespace gruca
