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

constexpr std::string_view kOriginal = "Original ";  // Of a worker, quoted by who waited for it.

constexpr std::array kFollowing = {
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError",
    "torch.multiprocessing.spawn.Process",
    "subprocess.CalledProcessError",
    "ConnectionResetError",
    "ConnectionRefusedError",
    "BrokenPipeError",
    "TimeoutError",
    "EOFError",
    "KeyboardInterrupt",
    "SystemExit",
    "torch.distributed.DistBackendError",
    "torch.distributed.DistNetworkError",
    "torch.distributed.DistStoreError",
};

// Anywhere in a line: "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] …"
constexpr std::array kFollowingWithin = {
    "Connection closed by peer",
    "Connection reset by peer",
    "/gloo/transport/",
};

bool is_following(std::string_view line) {
    return std::any_of(kFollowing.begin(), kFollowing.end(),
                       [&](const char* start) { return line.starts_with(start); }) ||
           std::any_of(kFollowingWithin.begin(), kFollowingWithin.end(),
                       [&](const char* part) { return line.find(part) != std::string_view::npos; });
}

bool is_indented(std::string_view line) {
    return line.empty() || line.front() == ' ' || line.front() == '\t';
}

struct Found {
    std::string_view line = {};
    std::string_view rank = {};  // "[rank5]: ", which its line began with.
};

// The first line of the rest that is not of the traceback's stack. Where its lines have a prefix,
// those without it are of others.
std::optional<Found> end_of_traceback(const std::vector<std::string>& lines, std::size_t from,
                                      std::string_view prefix) {
    for (std::size_t i = from; i < lines.size() && !prefix.empty(); ++i) {
        std::string_view line = lines[i];
        if (!line.starts_with(prefix)) continue;
        line.remove_prefix(prefix.size());
        if (!is_indented(line)) return Found{.line = line, .rank = prefix};
    }
    for (std::size_t i = from; i < lines.size(); ++i) {
        if (!is_indented(lines[i])) return Found{.line = lines[i]};
    }
    return std::nullopt;
}

std::optional<Found> exception_at(const std::vector<std::string>& lines, std::size_t i) {
    const std::string_view line = lines[i];
    if (const std::size_t at = line.find(kTraceback); at != std::string_view::npos) {
        std::string_view prefix = line.substr(0, at);
        if (prefix.ends_with(kOriginal)) prefix.remove_suffix(kOriginal.size());
        return end_of_traceback(lines, i + 1, prefix);
    }
    if (line.starts_with(kWhat)) return Found{.line = line.substr(kWhat.size())};
    return std::nullopt;
}

}  // namespace

std::string exception_line(std::string_view log) {
    const std::vector<std::string> lines = split(log, '\n');
    Found cause, following;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::optional<Found> found = exception_at(lines, i);
        if (!found) continue;
        Found& known = is_following(found->line) ? following : cause;
        // A rank's later exception follows from its own earlier one, another rank's from that.
        if (known.rank.empty() || known.rank == found->rank) known = *found;
    }
    return std::string(trim(cause.line.empty() ? following.line : cause.line));
}

}  // namespace gruca::agent
