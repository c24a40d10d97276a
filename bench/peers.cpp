#include "peers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "net/http_client.h"

namespace gruca::bench {
namespace {

constexpr int kStartTries = 600;
constexpr std::chrono::milliseconds kTryPause{100};

int free_port() {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        throw_errno("cannot find a free port");
    }
    return ntohs(address.sin_port);
}

void fill_in(std::string& word, const std::string& name, const std::string& value) {
    for (std::size_t at; (at = word.find(name)) != std::string::npos;) {
        word.replace(at, name.size(), value);
    }
}

}  // namespace

std::unique_ptr<Peer> Peer::start(const std::string& program, std::vector<std::string> argv) {
    const std::string path = std::string(GRUCA_SOURCE_DIR) + "/.bench-venv/bin/" + program;
    if (!std::filesystem::exists(path)) {
        std::fprintf(stderr, "bench: without %s: it is not installed\n", path.c_str());
        return nullptr;
    }
    return std::unique_ptr<Peer>(new Peer(path, std::move(argv)));
}

Peer::Peer(const std::string& program, std::vector<std::string> argv) : port_(free_port()) {
    argv.insert(argv.begin(), program);
    for (std::string& word : argv) {
        fill_in(word, "{port}", std::to_string(port_));
        fill_in(word, "{dir}", scratch_.path().string());
    }
    const UniqueFd log = open_file(scratch_.path() / "peer.log", O_WRONLY | O_CREAT | O_APPEND);
    process_ = std::make_unique<Subprocess>(
        SpawnOptions{.argv = argv, .stdout_fd = log.get(), .stderr_fd = log.get()});
    net::HttpClient http;
    for (int i = 0; i < kStartTries; ++i) {
        try {
            http.send(origin(),
                      {.method = "GET", .target = "/", .headers = {{"Host", origin().substr(7)}}});
            return;
        } catch (const Error&) {  // Not yet.
            if (process_->wait_for(kTryPause)) break;
        }
    }
    throw Error(ErrorCode::unavailable, "a peer does not answer: " + program);
}

Peer::~Peer() {
    process_->send_signal(SIGTERM);
    if (!process_->wait_for(std::chrono::seconds(10))) process_->send_signal(SIGKILL);
    process_->wait();
}

std::unique_ptr<Peer> start_moto() {
    return Peer::start("moto_server", {"-H", "127.0.0.1", "-p", "{port}"});
}

std::unique_ptr<Peer> start_seaweedfs() {
    return Peer::start("weed", {"server", "-s3", "-ip", "127.0.0.1", "-ip.bind", "127.0.0.1",
                                "-dir", "{dir}", "-s3.port", "{port}"});
}

std::optional<SlurmSpeed> measure_slurm(int jobs) {
    const std::string script = std::string(GRUCA_SOURCE_DIR) + "/bench/slurm_jobs.sh";
    const RunResult result = run({.argv = {script, std::to_string(jobs)}});
    double speed = 0;
    char version[64] = {};
    if (result.status.ok() &&
        std::sscanf(result.output.c_str(), "slurm %63s %lf", version, &speed) == 2) {
        return SlurmSpeed{fmt::format("Slurm {}", version), speed};
    }
    std::fprintf(stderr, "bench: without Slurm: %s\n", result.output.c_str());
    return std::nullopt;
}

}  // namespace gruca::bench
