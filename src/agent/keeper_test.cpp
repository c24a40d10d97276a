// Real namespaces, real programs. Skipped, with the reason, where the machine refuses namespaces.

#include "agent/keeper.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/process_id.h"
#include "base/subprocess.h"
#include "base/temp_dir.h"
#include "base/text.h"
#include "netlink/links.h"
#include "spec/node_directory.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::chrono::seconds kPatience{30};

class KeeperTest : public testing::Test {
  protected:
    void SetUp() override {
        fs::create_directories(work / "ml" / "model");
        write_file_atomic(work / "hosts", "127.0.0.1 localhost\n127.64.0.1 algo-1\n");
        static const std::string obstacle = why_impossible();
        if (!obstacle.empty()) GTEST_SKIP() << obstacle;
    }

    std::string why_impossible() const {
        try {
            const Ending ending = run(order({"true"}));
            EXPECT_EQ(ending.failure, "");
            fs::remove(work / "log");
            return "";
        } catch (const Error& error) {
            if (error.code() != ErrorCode::unavailable) throw;
            return error.message();
        }
    }

    KeeperOptions options() const { return {.program = GRUCA_AGENT_PROGRAM, .work_dir = work}; }
    KeeperOrder order(std::vector<std::string> argv) const {
        return {.argv = std::move(argv),
                .environment = {"PATH=/usr/bin:/bin", "GREETING=good day"},
                .hostname = "algo-1",
                .hosts_file = (work / "hosts").string(),
                .binds = {{.source = (work / "ml").string(), .target = "/opt/ml"}},
                .hidden_paths = {work.string()}};
    }
    KeeperOrder shell(const std::string& script) const { return order({"sh", "-c", script}); }

    static Ending end_of(Keeper& keeper) {
        std::optional<Ending> ending = keeper.wait_for(kPatience);
        if (!ending) throw Error(ErrorCode::deadline_exceeded, "the program does not end");
        return *ending;
    }
    Ending run(const KeeperOrder& what) const {
        Keeper keeper(options(), what);
        return end_of(keeper);
    }
    std::string output_of(const std::string& script) const {
        fs::remove(work / "log");
        const Ending ending = run(shell(script));
        EXPECT_EQ(ending.failure, "");
        return log();
    }
    std::string log() const { return read_file(work / "log"); }
    // A program says through its /opt/ml that it is where the test wants it to be.
    void wait_for_file(const std::string& name) const {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (!fs::exists(work / "ml" / name)) {
            if (std::chrono::steady_clock::now() > end) {
                throw Error(ErrorCode::deadline_exceeded, "the program does not write " + name);
            }
            ::usleep(2000);
        }
    }
    std::string mark() const { return "GRUCA_TEST_MARK=" + scratch.path().filename().string(); }
    // Processes of this machine with the fixture's mark in their environment.
    std::vector<std::string> survivors() const {
        std::vector<std::string> found;
        for (const auto& entry : fs::directory_iterator("/proc")) {
            std::ifstream file(entry.path() / "environ");
            const std::string text((std::istreambuf_iterator<char>(file)), {});
            if (text.find(mark()) != std::string::npos) found.push_back(entry.path().string());
        }
        return found;
    }

    // One with the mark, once it is that program.
    std::string wait_for_process(const std::string& name) const {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (std::chrono::steady_clock::now() < end) {
            for (const std::string& process : survivors()) {
                std::string comm;
                std::getline(std::ifstream(process + "/comm"), comm);
                if (comm == name) return process;
            }
            ::usleep(2000);
        }
        throw Error(ErrorCode::deadline_exceeded, "nobody runs " + name);
    }

    const TempDir scratch;
    const fs::path work = scratch.path() / "work";
};

TEST_F(KeeperTest, the_program_sees_its_own_tree_name_and_hosts) {
    EXPECT_EQ(output_of("hostname; cat /etc/hosts; ls /opt/ml; echo $GREETING; pwd"),
              "algo-1\n127.0.0.1 localhost\n127.64.0.1 algo-1\nmodel\ngood day\n/\n");
}

TEST_F(KeeperTest, what_it_writes_to_opt_ml_is_in_the_work_directory_and_nowhere_else) {
    const bool there = fs::exists("/opt/ml");
    output_of("echo weights > /opt/ml/model/weights; ls /opt");
    EXPECT_EQ(read_file(work / "ml" / "model" / "weights"), "weights\n");
    EXPECT_EQ(fs::exists("/opt/ml"), there);
    for (const auto& entry : fs::directory_iterator("/opt")) {
        EXPECT_THAT(log(), HasSubstr(entry.path().filename().string()));
    }
}

TEST_F(KeeperTest, exit_codes_and_signals_are_told_apart) {
    EXPECT_EQ(run(shell("exit 7")).status, (ExitStatus{.code = 7}));
    EXPECT_EQ(run(shell("kill -SEGV $$")).status, (ExitStatus{.code = 0, .signal = SIGSEGV}));
    EXPECT_TRUE(run(shell("exit 0")).status.ok());
}

TEST_F(KeeperTest, a_missing_program_is_the_orders_fault_and_named) {
    const Ending ending = run(order({"no-such-program"}));
    EXPECT_THAT(ending.failure, HasSubstr("no-such-program"));
    EXPECT_TRUE(ending.order_is_wrong);
}

TEST_F(KeeperTest, output_arrives_whole_and_in_order_however_the_program_ends) {
    std::string expected;
    for (int i = 1; i <= 20000; ++i) expected += std::to_string(i) + "\n";
    EXPECT_EQ(output_of("seq 1 20000; kill -KILL $$"), expected);
    EXPECT_EQ(output_of("printf 'a\\200b\\000c'; printf d >&2; printf e"),
              std::string("a\200b\0cde", 7));
}

TEST_F(KeeperTest, hidden_files_cannot_be_read_and_the_way_to_the_ml_tree_stays_open) {
    fs::create_directories(scratch.path() / "secrets");
    write_file_atomic(scratch.path() / "secrets" / "admin", "the admin key");
    write_file_atomic(scratch.path() / "credentials", "another key");
    KeeperOrder looking = shell("cat " + (scratch.path() / "secrets/admin").string() + "; cat " +
                                (scratch.path() / "credentials").string() + "; ls -A " +
                                (scratch.path() / "secrets").string() + "; echo x > " +
                                (scratch.path() / "secrets/new").string() + "; ls /opt/ml");
    looking.hidden_paths = {(scratch.path() / "secrets").string(), work.string(),
                            (scratch.path() / "credentials").string(), "/does/not/exist"};
    run(looking);
    EXPECT_THAT(log(), Not(HasSubstr("key")));
    EXPECT_THAT(log(), EndsWith("model\n"));
    EXPECT_FALSE(fs::exists(scratch.path() / "secrets" / "new"));
}

TEST_F(KeeperTest, a_hidden_file_stays_hidden_when_the_machine_replaces_it_or_makes_it_later) {
    const fs::path home = scratch.path() / "home";
    fs::create_directories(home / "kept");
    write_file_atomic(home / "credentials", "the first key");
    KeeperOrder waiting = shell(
        "touch /opt/ml/up; while ! test -e /opt/ml/go; do sleep 0.01; done; "
        "cat " +
        home.string() + "/credentials " + home.string() + "/.aws/credentials; ls " + home.string());
    waiting.hidden_paths = {(home / "credentials").string(), (home / ".aws").string()};
    Keeper keeper(options(), waiting);
    wait_for_file("up");
    write_file_atomic(home / "credentials", "the second key");
    fs::create_directory(home / ".aws");
    write_file_atomic(home / ".aws" / "credentials", "the third key");
    write_file_atomic(work / "ml" / "go", "");
    end_of(keeper);
    EXPECT_THAT(log(), Not(HasSubstr("key")));
    EXPECT_THAT(log(), EndsWith("kept\n"));
}

TEST_F(KeeperTest, with_a_hidden_file_go_its_backups_and_what_was_to_become_it) {
    const fs::path home = scratch.path() / "home";
    fs::create_directories(home / "credentials.d");
    for (const char* name : {"credentials", "credentials~", ".credentials.swp", "#credentials#",
                             "credentials.gruca-Ab3x9Z", "others"}) {
        write_file_atomic(home / name, "a key");
    }
    fs::create_symlink("others", home / "credentials.old");
    KeeperOrder looking = shell("ls -A " + home.string());
    looking.hidden_paths = {(home / "credentials").string()};
    run(looking);
    EXPECT_EQ(log(), "credentials.d\nothers\n");
}

TEST_F(KeeperTest, calls_that_no_training_needs_are_refused) {
    // keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING), io_uring_setup, bpf.
    EXPECT_EQ(output_of("python3 -c 'import ctypes, errno\n"
                        "libc = ctypes.CDLL(None, use_errno=True)\n"
                        "for call in ((250, 0, -4, 1), (425, 1, 0, 0), (321, 0, 0, 0)):\n"
                        "    print(libc.syscall(*call), errno.errorcode[ctypes.get_errno()])'"),
              "-1 EPERM\n-1 EPERM\n-1 EPERM\n");
}

// Who could, would mount control groups without their limits and freeze itself against every kill.
TEST_F(KeeperTest, no_program_makes_namespaces_or_mounts_in_any_way) {
    EXPECT_EQ(output_of(R"(exec 2>&1
        for kind in U Ur m n C UrmC; do unshare -$kind true 2>/dev/null && echo unshared $kind; done
        mkdir /opt/ml/group
        for kind in cgroup cgroup2 tmpfs proc; do
            mount -t $kind none /opt/ml/group 2>/dev/null && echo mounted $kind
        done
        exec python3 -c '
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
NEWUSER, SIGCHLD, CLONE, CLONE3, OPEN_TREE, FSOPEN, SETNS = 0x10000000, 17, 56, 435, 428, 430, 308
def call(*words):
    if (got := libc.syscall(*words)) == 0: os._exit(0)
    print(got, errno.errorcode[ctypes.get_errno()], flush=True)
call(CLONE, NEWUSER | SIGCHLD, 0, 0, 0, 0)
call(CLONE3, (ctypes.c_uint64 * 8)(NEWUSER, 0, 0, 0, SIGCHLD), 64)
call(OPEN_TREE, -100, b"/", 1)
call(FSOPEN, b"cgroup2", 0)
call(SETNS, 0, 0)
')"),
              "-1 EPERM\n-1 ENOSYS\n-1 EPERM\n-1 EPERM\n-1 EPERM\n");
}

TEST_F(KeeperTest, threads_children_daemons_and_spawned_programs_start_as_ever) {
    EXPECT_EQ(output_of(R"(exec python3 -c '
import multiprocessing, os, subprocess, threading
def say(text): os.write(1, f"{text}\n".encode())
threads = [threading.Thread(target=lambda: None) for _ in range(50)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
say("threads")
os.waitpid(os.posix_spawn("/bin/echo", ["echo", "spawned"], {}), 0)
say(subprocess.run(["echo", "run"], capture_output=True, text=True).stdout.strip())
with multiprocessing.get_context("fork").Pool(2) as pool: say(pool.map(abs, [-1, -2]))
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: say("daemon"); os._exit(0)
    os.wait(); os._exit(0)
os.wait()
subprocess.run(["setsid", "-w", "echo", "session"])
')"),
              "threads\nspawned\nrun\n[1, 2]\ndaemon\nsession\n");
}

TEST_F(KeeperTest, proc_is_private_and_the_keeper_cannot_be_looked_into) {
    EXPECT_THAT(output_of("cat /proc/1/environ; ls /proc/1/fd; ls /proc/1/root/; exit 0"),
                Not(HasSubstr("opt\n")));
    const std::string pids = output_of("ls /proc | grep '^[0-9]' | sort -n | tail -1");
    EXPECT_LT(parse_int(trim(pids)).value(), 50);
}

TEST_F(KeeperTest, capabilities_are_dockers_but_for_raw_sockets_and_no_new_ones_come) {
    const std::string status = output_of("grep -E 'Cap|NoNewPrivs' /proc/self/status");
    for (const char* line :
         {"CapEff:\t00000000a80405fb", "CapBnd:\t00000000a80405fb", "CapPrm:\t00000000a80405fb",
          "CapAmb:\t0000000000000000", "CapInh:\t0000000000000000", "NoNewPrivs:\t1"}) {
        EXPECT_THAT(status, HasSubstr(line));
    }
}

TEST_F(KeeperTest, the_machine_can_be_read_but_not_changed_and_has_no_disks) {
    fs::create_directory(work / "tmp");
    KeeperOrder vandal = shell(
        "echo x > /etc/gruca-test; echo x > /proc/sys/kernel/core_pattern; echo x > /sys/x; "
        "umount /opt/ml; mount -t tmpfs none /mnt; ls /dev; mknod /tmp/$$ b 254 0 && "
        "dd if=/tmp/$$ count=1; rm -f /tmp/$$; echo ok > /dev/null && echo ok > /dev/shm/x && "
        "echo ok > /tmp/$$ && rm /tmp/$$ && echo fine");
    vandal.binds.push_back({.source = (work / "tmp").string(), .target = "/tmp"});
    EXPECT_EQ(run(vandal).failure, "");
    const std::string errors = log();
    EXPECT_FALSE(fs::exists("/etc/gruca-test"));
    EXPECT_THAT(errors, EndsWith("fine\n"));
    EXPECT_THAT(errors, Not(HasSubstr("vda")));
    EXPECT_THAT(errors, Not(HasSubstr("1+0 records")));
}

TEST_F(KeeperTest, a_device_made_in_dev_opens_nothing) {
    const std::string counts = output_of(
        "mknod /dev/made c 1 5 && head -c 1 /dev/made | wc -c; head -c 1 /dev/zero | wc -c");
    EXPECT_THAT(counts, Not(HasSubstr("1\n1\n")));
    EXPECT_THAT(counts, EndsWith("1\n"));
}

TEST_F(KeeperTest, the_program_inherits_no_descriptor_and_reads_nothing_from_stdin) {
    const UniqueFd secret = open_file("/etc/passwd", O_RDONLY);
    ::fcntl(secret.get(), F_SETFD, 0);
    EXPECT_EQ(output_of("exec ls /proc/self/fd"), "0\n1\n2\n3\n");  // 3: ls reads the directory.
    EXPECT_EQ(output_of("cat; echo end"), "end\n");
}

TEST_F(KeeperTest, whatever_the_program_left_running_dies_with_it) {
    KeeperOrder leaving = shell(
        "(trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; (sleep 1000 & touch /opt/ml/up; "
        "wait)' & ) & while ! test -e /opt/ml/up; do sleep 0.01; done");
    leaving.environment.push_back(mark());
    EXPECT_TRUE(run(leaving).status.ok());
    EXPECT_THAT(survivors(), IsEmpty());
}

TEST_F(KeeperTest, terminate_lets_the_program_end_by_itself_and_kill_does_not_ask) {
    Keeper polite(options(), shell("trap 'echo saved; exit 0' TERM; touch /opt/ml/up; "
                                   "while :; do sleep 0.01; done"));
    wait_for_file("up");
    polite.terminate();
    EXPECT_TRUE(end_of(polite).status.ok());
    EXPECT_EQ(log(), "saved\n");
    fs::remove(work / "ml" / "up");
    Keeper deaf(options(), shell("trap '' TERM; touch /opt/ml/up; while :; do sleep 0.01; done"));
    wait_for_file("up");
    deaf.terminate();
    EXPECT_FALSE(deaf.wait_for(std::chrono::milliseconds(50)));
    deaf.kill();
    EXPECT_EQ(end_of(deaf).status.signal, SIGKILL);
}

TEST_F(KeeperTest, a_dead_agent_takes_the_program_along_but_not_its_last_words) {
    KeeperOrder talking = shell("seq 1 5000; touch /opt/ml/up; trap '' TERM; sleep 1000");
    talking.environment.push_back(mark());
    const ProcessId keeper = [&] {
        // The stand-in for the agent: a process that starts a keeper and is killed.
        std::array<int, 2> ends;
        EXPECT_EQ(::pipe(ends.data()), 0);
        const pid_t agent = ::fork();
        if (agent == 0) {
            Keeper own(options(), talking);
            const pid_t pid = own.pid();
            [[maybe_unused]] const ssize_t told = ::write(ends[1], &pid, sizeof pid);
            ::pause();
        }
        pid_t pid = 0;
        EXPECT_EQ(::read(ends[0], &pid, sizeof pid), ssize_t{sizeof pid});
        const ProcessId id = process_id_of(pid).value();
        wait_for_file("up");
        ::kill(agent, SIGKILL);
        ::waitpid(agent, nullptr, 0);
        return id;
    }();
    EXPECT_TRUE(wait_for_end(open_process(keeper), kPatience));
    EXPECT_THAT(survivors(), IsEmpty());
    EXPECT_THAT(log(), EndsWith("\n4999\n5000\n"));
    EXPECT_EQ(Ending::from_json(Json::parse(read_file(work / kEndingFile))).status.signal, SIGKILL);
}

TEST_F(KeeperTest, a_killed_keeper_leaves_no_process_and_the_ending_says_what_happened) {
    KeeperOrder sleeping = shell("touch /opt/ml/up; sleep 1000");
    sleeping.environment.push_back(mark());
    Keeper keeper(options(), sleeping);
    wait_for_file("up");
    keeper.destroy();
    EXPECT_THAT(end_of(keeper).failure, HasSubstr("keep"));
    EXPECT_THAT(survivors(), IsEmpty());
}

// Kills the keeper while its agent prepares it, and waits until the kernel has done it.
void kill_and_wait(pid_t keeper) {
    ::kill(keeper, SIGKILL);
    siginfo_t info = {};
    ::waitid(P_PID, static_cast<id_t>(keeper), &info, WEXITED | WNOWAIT);
}

TEST_F(KeeperTest, a_keeper_killed_before_it_is_connected_is_the_reason_and_not_what_failed_of_it) {
    KeeperOrder connected = shell("true");
    connected.network = {
        .bridge = "gruca-none", .address = "10.9.8.2", .prefix = 24, .gateway = ""};
    KeeperOptions killing = options();
    killing.account = kill_and_wait;
    Keeper keeper(killing, connected);
    const Ending ending = end_of(keeper);
    EXPECT_THAT(ending.failure, HasSubstr("keeps the training program was killed by signal 9"));
    EXPECT_EQ(ending.status.signal, SIGKILL);
    EXPECT_FALSE(ending.order_is_wrong);
    EXPECT_THAT(log(), EndsWith(spec::node_directory::kCutMark));
}

TEST_F(KeeperTest, a_keeper_killed_while_it_is_accounted_is_the_reason) {
    KeeperOptions killing = options();
    killing.account = [](pid_t keeper) {
        kill_and_wait(keeper);
        throw Error(ErrorCode::internal, "no such process");
    };
    Keeper keeper(killing, shell("true"));
    EXPECT_THAT(end_of(keeper).failure, HasSubstr("was killed by signal 9"));
}

TEST_F(KeeperTest, a_keeper_killed_before_it_hears_its_order_is_the_reason) {
    KeeperOptions killing = options();
    killing.account = kill_and_wait;
    Keeper keeper(killing, shell("true"));
    EXPECT_THAT(end_of(keeper).failure, HasSubstr("was killed by signal 9"));
}

TEST_F(KeeperTest, a_step_that_fails_beside_a_living_keeper_is_the_reason_and_the_keeper_leaves) {
    pid_t started = 0;
    KeeperOptions failing = options();
    failing.account = [&](pid_t keeper) {
        started = keeper;
        throw Error(ErrorCode::not_found, "no group");
    };
    try {
        Keeper keeper(failing, shell("true"));
        FAIL() << "it should have thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_found);
        EXPECT_EQ(error.message(), "no group");
    }
    EXPECT_NE(::kill(started, 0), 0) << "the keeper is still there";
    EXPECT_EQ(log(), "");
}

// With a bridge in a network of the test's own.
class KeeperNetworkTest : public KeeperTest {
  protected:
    void SetUp() override {
        KeeperTest::SetUp();
        if (IsSkipped()) return;
        if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "no right to make a network namespace";
        netlink::Links().make_bridge(
            "gruca-t", netlink::InterfaceAddress{.address = 0x0a090801, .prefix = 24});
    }
    static std::size_t interfaces() {
        const std::string names = gruca::run({.argv = {"ip", "-o", "link"}}).output;
        return static_cast<std::size_t>(std::count(names.begin(), names.end(), '\n'));
    }
};

TEST_F(KeeperNetworkTest, whenever_a_keeper_is_killed_that_is_the_reason_and_no_link_stays) {
    constexpr int kMoments = 60;
    const std::size_t before = interfaces();
    KeeperOrder connected = shell("sleep 1000");
    connected.environment.push_back(mark());
    connected.network = {
        .bridge = "gruca-t", .address = "10.9.8.2", .prefix = 24, .gateway = "10.9.8.1"};
    connected.resolver_file = (work / "hosts").string();
    connected.remote_shell = {.address = "10.9.8.2", .secret = "secret"};
    for (int i = 0; i < kMoments; ++i) {
        std::jthread killer;
        KeeperOptions killing = options();
        // From before it is connected, through the making of links and its sandbox, to its program.
        killing.account = [&](pid_t pid) {
            killer = std::jthread([pid, i] {
                std::this_thread::sleep_for(std::chrono::microseconds(50) * i);
                ::kill(pid, SIGKILL);
            });
        };
        Keeper keeper(killing, connected);
        EXPECT_THAT(end_of(keeper).failure, HasSubstr("was killed by signal 9")) << "moment " << i;
    }
    EXPECT_THAT(survivors(), IsEmpty());
    // The kernel takes a network down when it finds the time.
    for (const auto end = std::chrono::steady_clock::now() + kPatience; interfaces() != before;) {
        ASSERT_LT(std::chrono::steady_clock::now(), end) << "a link is left";
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

// A process that is frozen does not end when it is killed, until it is thawed: as if it hung in the
// kernel. Only control groups of version 1 can do it.
class Frozen {
  public:
    explicit Frozen(const std::string& process) {
        fs::create_directory(group_);
        write("cgroup.procs", fs::path(process).filename().string());
        write("freezer.state", "FROZEN");
    }
    ~Frozen() {
        thaw();
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (::rmdir(group_.c_str()) != 0 && std::chrono::steady_clock::now() < end) {
            ::usleep(2000);
        }
    }
    Frozen(const Frozen&) = delete;
    Frozen& operator=(const Frozen&) = delete;

    static bool is_possible() { return ::access("/sys/fs/cgroup/freezer/tasks", W_OK) == 0; }
    void thaw() const { write("freezer.state", "THAWED"); }

  private:
    void write(const char* file, const std::string& word) const {
        std::ofstream(group_ / file) << word << std::flush;
    }

    const fs::path group_ =
        "/sys/fs/cgroup/freezer/gruca-keeper-test-" + std::to_string(::getpid());
};

// What lies in the pipe when the program ends would be lost if the keeper were killed while it
// waits for the child.
TEST_F(KeeperTest, what_was_printed_is_in_the_log_before_a_child_that_hangs_is_waited_for) {
    if (!Frozen::is_possible()) GTEST_SKIP() << "no control groups that freeze on this machine";
    const std::string printed(900'000, 'x');  // Less than the pipe holds.
    write_file_atomic(work / "ml" / "printed", printed);
    KeeperOrder leaving = shell(
        "sleep 1000 > /dev/null 2>&1 & touch /opt/ml/up; while ! test -e /opt/ml/go; do sleep "
        "0.01; "
        "done; cat /opt/ml/printed; touch /opt/ml/said");
    leaving.environment.push_back(mark());
    Keeper keeper(options(), leaving);
    wait_for_file("up");
    const Frozen frozen(wait_for_process("sleep"));
    ::kill(keeper.pid(), SIGSTOP);
    write_file_atomic(work / "ml" / "go", "");
    wait_for_file("said");
    ::kill(keeper.pid(), SIGCONT);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (log() != printed && std::chrono::steady_clock::now() < end) ::usleep(2000);
    frozen.thaw();
    EXPECT_EQ(log().size(), printed.size());
    EXPECT_FALSE(end_of(keeper).stuck) << "it gave the child up before it wrote the log";
}

TEST_F(KeeperTest, a_mount_point_is_made_without_a_trace_on_the_machine) {
    fs::create_directories(scratch.path() / "host" / "existing");
    fs::create_directories(work / "ml" / "checkpoints");
    KeeperOrder bound = shell("ls " + (scratch.path() / "host").string());
    bound.binds.push_back({.source = (work / "ml" / "checkpoints").string(),
                           .target = (scratch.path() / "host" / "new" / "deep").string()});
    EXPECT_EQ(run(bound).failure, "");
    EXPECT_EQ(log(), "existing\nnew\n");
    EXPECT_FALSE(fs::exists(scratch.path() / "host" / "new"));
}

}  // namespace
}  // namespace gruca::agent
