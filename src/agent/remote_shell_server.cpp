// The server's side. Plain processes that block: one that accepts, one a session, one a command.

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <deque>

#include "agent/job_network.h"
#include "agent/remote_shell.h"
#include "agent/remote_shell_wire.h"
#include "agent/sandbox.h"
#include "base/boundary.h"
#include "base/error.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "net/sigv4_canonical.h"

namespace gruca::agent {
namespace {

constexpr int kBacklog = 256;
constexpr unsigned kHelloSeconds = 10;
constexpr std::size_t kPieceBytes = 64u << 10;
constexpr int kListenFd = 3;

UniqueFd listen_on(const std::string& address, std::uint16_t port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in where = {};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    ::inet_pton(AF_INET, address.c_str(), &where.sin_addr);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0 ||
        ::listen(fd.get(), kBacklog) != 0) {
        throw_errno("cannot listen on " + address + ":" + std::to_string(port));
    }
    return fd;
}

std::string new_challenge() {
    std::array<std::byte, 16> bytes;
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        throw_errno("cannot draw a random number");
    }
    return hex(bytes);
}

// The command that the client asks for; nothing when it may not, which it is told. Until it may,
// SIGALRM ends this process: the clock sends it, and run_server() when others want the place.
std::optional<std::string> accept_command(int socket, const std::string& secret) {
    ::alarm(kHelloSeconds);
    const std::string challenge = new_challenge();
    send_frame(socket, {.kind = FrameKind::challenge, .bytes = challenge});
    const std::optional<Frame> request = read_frame(socket);
    if (!request) return std::nullopt;
    const std::size_t digits = sign_command(secret, challenge, "").size();
    if (request->kind != FrameKind::request || request->bytes.size() < digits) {
        send_frame(socket, {.kind = FrameKind::refusal, .bytes = "that is no request"});
        return std::nullopt;
    }
    std::string command = request->bytes.substr(digits);
    if (!is_same(request->bytes.substr(0, digits), sign_command(secret, challenge, command))) {
        send_frame(socket, {.kind = FrameKind::refusal, .bytes = "you are of another job"});
        return std::nullopt;
    }
    ::signal(SIGALRM, SIG_IGN);
    ::alarm(0);
    return command;
}

struct Command {
    pid_t pid;
    UniqueFd process, output, error;
};

[[noreturn]] void become_command(const std::string& command, int output, int error,
                                 const std::vector<std::string>& environment) {
    const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    std::vector<char*> variables;
    for (const std::string& one : environment) variables.push_back(const_cast<char*>(one.c_str()));
    variables.push_back(nullptr);
    const std::array<const char*, 4> argv = {"sh", "-c", command.c_str(), nullptr};
    ::setsid();
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGALRM, SIG_DFL);
    if (::dup2(null.get(), STDIN_FILENO) >= 0 && ::dup2(output, STDOUT_FILENO) >= 0 &&
        ::dup2(error, STDERR_FILENO) >= 0) {
        ::close_range(STDERR_FILENO + 1, ~0u, 0);
        ::execve("/bin/sh", const_cast<char* const*>(argv.data()), variables.data());
    }
    ::_exit(127);
}

Command start(const std::string& command, const std::vector<std::string>& environment) {
    std::array<int, 2> output, error;
    if (::pipe2(output.data(), O_CLOEXEC) != 0 || ::pipe2(error.data(), O_CLOEXEC) != 0) {
        throw_errno("cannot create a pipe");
    }
    const UniqueFd output_in(output[1]), error_in(error[1]);
    Command started{.pid = ::fork(),
                    .process = UniqueFd(),
                    .output = UniqueFd(output[0]),
                    .error = UniqueFd(error[0])};
    if (started.pid < 0) throw_errno("cannot fork");
    if (started.pid == 0) become_command(command, output[1], error[1], environment);
    started.process.reset(static_cast<int>(::syscall(SYS_pidfd_open, started.pid, 0)));
    for (const UniqueFd* end : {&started.output, &started.error}) {
        ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    }
    return started;
}

// Sends on what is there now. False: nothing more can come.
bool pass_on(const UniqueFd& from, FrameKind kind, int socket) {
    std::string piece(kPieceBytes, '\0');
    for (;;) {
        const ssize_t got = ::read(from.get(), piece.data(), piece.size());
        if (got == 0) return false;
        if (got < 0) return errno == EAGAIN || errno == EINTR;
        send_frame(socket, {.kind = kind, .bytes = piece.substr(0, static_cast<std::size_t>(got))});
    }
}

// Until the command ends, whatever it has left running, or the client goes.
void attend(Command& command, int socket) {
    for (;;) {
        std::array<pollfd, 4> waiting = {
            pollfd{.fd = command.output.get(), .events = POLLIN, .revents = 0},
            pollfd{.fd = command.error.get(), .events = POLLIN, .revents = 0},
            pollfd{.fd = command.process.get(), .events = POLLIN, .revents = 0},
            pollfd{.fd = socket, .events = POLLRDHUP, .revents = 0}};
        if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
        if (waiting[3].revents != 0) throw Error(ErrorCode::cancelled, "the client is gone");
        const bool ended = waiting[2].revents != 0;
        for (auto& [fd, kind] : {std::pair(&command.output, FrameKind::output),
                                 std::pair(&command.error, FrameKind::error)}) {
            if (fd->is_open() && !pass_on(*fd, kind, socket)) fd->reset();
        }
        if (ended) return;
    }
}

void wait_for_client_to_go(int socket) {
    pollfd waiting{.fd = socket, .events = POLLRDHUP, .revents = 0};
    while (::poll(&waiting, 1, -1) < 0) {
    }
}

void serve(int socket, const RemoteShellOrder& shell, const std::vector<std::string>& environment) {
    const std::optional<std::string> text = accept_command(socket, shell.secret);
    if (!text) return;
    if (text->empty()) return wait_for_client_to_go(socket);
    Command command = start(*text, environment);
    if (run_guarded([&] { attend(command, socket); })) {
        ::kill(-command.pid, SIGKILL);
        return;
    }
    int raw = 0;
    ::waitpid(command.pid, &raw, 0);
    const ExitStatus status = WIFSIGNALED(raw) ? ExitStatus{.code = 0, .signal = WTERMSIG(raw)}
                                               : ExitStatus{.code = WEXITSTATUS(raw), .signal = 0};
    send_frame(socket,
               {.kind = FrameKind::exit_code, .bytes = std::to_string(status.shell_code())});
}

[[noreturn]] void run_server(const KeeperOrder& order) {
    std::size_t sessions = 0;
    std::deque<pid_t> newest;  // Who is not known yet is one of them.
    for (;;) {
        const UniqueFd socket(::accept4(kListenFd, nullptr, nullptr, SOCK_CLOEXEC));
        for (pid_t ended; (ended = ::waitpid(-1, nullptr, WNOHANG)) > 0; --sessions) {
            std::erase(newest, ended);
        }
        if (!socket.is_open() || sessions >= kSessionsMax) continue;
        const pid_t session = ::fork();
        if (session == 0) {
            ::close(kListenFd);
            run_guarded([&] { serve(socket.get(), *order.remote_shell, order.environment); });
            ::_exit(0);
        }
        if (session < 0) continue;
        ++sessions;
        newest.push_back(session);
        if (newest.size() <= kStrangersMax) continue;
        ::kill(newest.front(), SIGALRM);
        newest.pop_front();
    }
}

}  // namespace

std::string remote_shell_secret(const spec::Task& task) {
    return net::signature_of(task.job_secret_key, "", {.region = "", .service = kRemoteShellName},
                             task.job_name);
}

void write_remote_shell_files(const spec::Task& task, const std::filesystem::path& program,
                              const std::filesystem::path& ml) {
    namespace fs = std::filesystem;
    fs::create_directories(ml / kRemoteShellDirectory);
    fs::remove(ml / kRemoteShellDirectory / kRemoteShellName);
    fs::create_symlink(program, ml / kRemoteShellDirectory / kRemoteShellName);
    const UniqueFd secret = open_file(ml / kRemoteShellSecret, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    write_all(secret.get(), bytes_of(remote_shell_secret(task) + "\n"));
}

void start_remote_shell(const KeeperOrder& order) {
    if (!order.remote_shell) return;
    const std::optional<Error> failure = run_guarded([&] {
        const UniqueFd listening = listen_on(order.remote_shell->address, kRemoteShellPort);
        const pid_t pid = ::fork();
        if (pid < 0) throw_errno("cannot fork");
        if (pid > 0) return;
        // From here on this is a process of the job like its program.
        ::setsid();
        ::prctl(PR_SET_NAME, kRemoteShellName, 0, 0, 0);
        const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) ::dup2(null.get(), fd);
        if (::dup2(listening.get(), kListenFd) < 0) ::_exit(1);
        ::close_range(kListenFd + 1, ~0u, 0);
        ::signal(SIGPIPE, SIG_IGN);
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        const std::optional<Error> refused = run_guarded([] { drop_privileges(); });
        if (refused) ::_exit(1);
        run_server(order);
    });
    if (failure) {
        ::dprintf(STDERR_FILENO, "gruca-keeper: mpirun cannot start here: %s\n", failure->what());
    }
}

}  // namespace gruca::agent
