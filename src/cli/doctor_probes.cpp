#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <span>
#include <thread>

#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "cli/doctor.h"

namespace gruca::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kOutputBytesMax = 1u << 20;  // Of a program's answer.

// The text after "key:" in a file of such lines; empty when there is none.
std::string line_of(const std::string& text, std::string_view key) {
    for (const std::string& line : split(text, '\n')) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos || trim(line.substr(0, colon)) != key) continue;
        return std::string(trim(std::string_view(line).substr(colon + 1)));
    }
    return "";
}

// "MemTotal:  123 kB"
std::uint64_t bytes_in(const std::string& meminfo, std::string_view key) {
    const std::string value = line_of(meminfo, key);
    return static_cast<std::uint64_t>(parse_int(value.substr(0, value.find(' '))).value_or(0))
           << 10u;
}

bool keeps_attributes(const fs::path& directory) {
    const fs::path file = directory / (".gruca-doctor-" + std::to_string(::getpid()));
    bool kept = false;
    run_guarded([&] {
        const UniqueFd probe = open_file(file, O_RDWR | O_CREAT | O_EXCL, 0600);
        kept = ::fsetxattr(probe.get(), "user.gruca", "x", 1, 0) == 0;
    });
    ::unlink(file.c_str());
    return kept;
}

// Of the directory, or, while it does not exist, of the one that it would be made in.
SpaceFacts space_at(const fs::path& wanted) {
    fs::path directory = wanted;
    while (!fs::exists(directory) && directory.has_relative_path()) {
        directory = directory.parent_path();
    }
    SpaceFacts facts{.path = wanted.string()};
    struct statvfs space = {};
    if (::statvfs(directory.c_str(), &space) != 0) return facts;
    facts.free_bytes = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
    facts.free_files = space.f_favail;
    facts.files = space.f_files;
    facts.keeps_attributes = keeps_attributes(directory);
    return facts;
}

std::string fuse_obstacle() {
    const UniqueFd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
    return device.is_open() ? "" : std::string("/dev/fuse: ") + ::strerror(errno);
}

// What a program prints. One that hangs is killed, and left to itself if even that does not help.
std::string output_of(const std::vector<std::string>& argv, std::chrono::milliseconds patience) {
    const UniqueFd said(::memfd_create("probe", MFD_CLOEXEC));
    if (!said.is_open()) throw_errno("cannot make a file in memory");
    // In a session of its own: who is interrupted at the terminal would not clear away.
    Subprocess program(
        {.argv = argv, .stdout_fd = said.get(), .stderr_fd = said.get(), .new_session = true});
    if (!program.wait_for(patience)) {
        program.send_signal(SIGKILL);
        program.release();
        throw Error(ErrorCode::deadline_exceeded,
                    "it has not answered within " + std::to_string(patience.count()) + " ms");
    }
    std::string text(kOutputBytesMax, '\0');
    ::lseek(said.get(), 0, SEEK_SET);
    text.resize(read_full(said.get(), std::as_writable_bytes(std::span(text))));
    return text;
}

// What a program says when it is told to --probe. What it cannot say becomes the `why` of
// `subject`.
Json ask(const std::vector<std::string>& argv, const char* subject,
         std::chrono::milliseconds patience) {
    Json answer = Json::object();
    const auto error = run_guarded([&] {
        const std::string said = output_of(argv, patience);
        const std::size_t json = said.find('{');  // What it logs comes before.
        if (json == std::string::npos) throw Error(ErrorCode::internal, said);
        answer = Json::parse(trim(std::string_view(said).substr(json)));
    });
    if (!error) return answer;
    const std::string why = argv.front() + " --probe: " + error->message();
    return Json::object({{subject, Json::object({{"why", why}})}});
}

Json probe(const fs::path& program_dir, const fs::path& data_dir,
           std::chrono::milliseconds patience) {
    Json said = ask({(program_dir / "gruca-agent").string(), "--probe"}, "sandbox", patience);
    const Json of_service =
        ask({(program_dir / "gruca-service").string(), "--probe", "--data-dir", data_dir.string()},
            "network", patience);
    if (const Json* network = of_service.find("network")) said.set("network", *network);
    return said;
}

int count_gpus() {
    int count = 0;
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator("/dev", failure)) {
        const std::string name = entry.path().filename().string();
        count += name.starts_with("nvidia") && parse_int(name.substr(6)) ? 1 : 0;
    }
    return count;
}

bool clock_is_synchronised() {
    timex facts = {};
    return ::adjtimex(&facts) != TIME_ERROR && (facts.status & STA_UNSYNC) == 0;
}

}  // namespace

MachineFacts look_at_machine(const fs::path& program_dir, const fs::path& data_dir,
                             std::chrono::milliseconds patience) {
    MachineFacts facts;
    facts.is_root = ::geteuid() == 0;
    utsname system = {};
    if (::uname(&system) == 0) facts.kernel = system.release;
    for (const char* program : {"gruca-service", "gruca-agent", "gruca-keeper", "gruca-train"}) {
        if (!fs::exists(program_dir / program)) facts.missing_programs.emplace_back(program);
    }
    facts.probe = probe(program_dir, data_dir, patience);
    facts.fuse_obstacle = fuse_obstacle();
    facts.has_fusermount = fs::exists("/usr/bin/fusermount3") || fs::exists("/bin/fusermount3");
    const std::string meminfo = read_file("/proc/meminfo");
    facts.memory_bytes = bytes_in(meminfo, "MemTotal");
    facts.memory_available_bytes = bytes_in(meminfo, "MemAvailable");
    facts.swap_used_bytes = bytes_in(meminfo, "SwapTotal") - bytes_in(meminfo, "SwapFree");
    facts.data_dir = space_at(data_dir);
    rlimit limit = {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.open_files_max = limit.rlim_max;
    facts.cores = static_cast<int>(std::thread::hardware_concurrency());
    const std::string cpuinfo = read_file("/proc/cpuinfo");
    facts.processor = line_of(cpuinfo, "model name");
    facts.processor_features = split(line_of(cpuinfo, "flags"), ' ');
    facts.gpus = count_gpus();
    facts.clock_is_synchronised = clock_is_synchronised();
    return facts;
}

}  // namespace gruca::cli
