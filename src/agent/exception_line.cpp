#include "agent/exception_line.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/text.h"

namespace gruca::agent {
namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr std::string_view kWhat = "  what():  ";

constexpr std::array kFollowing = {
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError",
    "torch.multiprocessing.spawn.Process",
    "subprocess.CalledProcessError",
    "ConnectionResetError",
    "ConnectionRefusedError",
    "BrokenPipeError",
    "EOFError",
    "KeyboardInterrupt",
    "SystemExit",
    "torch.distributed.DistBackendError",
    "RuntimeError: Connection closed by peer",
    "RuntimeError: [",  // "[../third_party/gloo/…] Connection closed by peer"
};

bool is_following(std::string_view line) {
    return std::any_of(kFollowing.begin(), kFollowing.end(),
                       [&](const char* start) { return line.starts_with(start); });
}

bool is_indented(std::string_view line) {
    return line.empty() || line.front() == ' ' || line.front() == '\t';
}

// The first line of the rest that is not of the traceback's stack.
std::optional<std::string_view> end_of_traceback(const std::vector<std::string>& lines,
                                                 std::size_t from, std::string_view prefix) {
    for (std::size_t i = from; i < lines.size(); ++i) {
        std::string_view line = lines[i];
        if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
        if (!is_indented(line)) return line;
    }
    return std::nullopt;
}

}  // namespace

std::string exception_line(std::string_view log) {
    const std::vector<std::string> lines = split(log, '\n');
    std::string cause, following;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string_view line = lines[i];
        std::optional<std::string_view> found;
        if (const std::size_t at = line.find(kTraceback); at != std::string_view::npos) {
            found = end_of_traceback(lines, i + 1, line.substr(0, at));
        } else if (line.starts_with(kWhat)) {
            found = line.substr(kWhat.size());
        }
        if (found) (is_following(*found) ? following : cause) = trim(*found);
    }
    return cause.empty() ? following : cause;
}

}  // namespace gruca::agent
