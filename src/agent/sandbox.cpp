#include "agent/sandbox.h"

#include <fcntl.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>

#include "agent/job_network.h"
#include "agent/mounts.h"
#include "agent/system_calls.h"
#include "base/error.h"
#include "base/file.h"

namespace gruca::agent {
namespace {

namespace fs = std::filesystem;

// What a program may do with /proc and /sys is what Docker allows.
constexpr std::array kProcReadOnly = {"bus", "fs", "irq", "sys", "sysrq-trigger"};
constexpr std::array kMasked = {"/proc/acpi",          "/proc/kcore",      "/proc/keys",
                                "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
                                "/proc/sched_debug",   "/proc/scsi",       "/sys/firmware"};
constexpr std::array kDevices = {"null", "zero", "full", "random", "urandom", "tty"};

// Docker's, without CAP_NET_RAW: who has it can read what others send over the loopback device.
constexpr std::array kKeptCapabilities = {
    CAP_CHOWN,      CAP_DAC_OVERRIDE, CAP_FSETID,     CAP_FOWNER,  CAP_MKNOD,
    CAP_SETGID,     CAP_SETUID,       CAP_SETFCAP,    CAP_SETPCAP, CAP_NET_BIND_SERVICE,
    CAP_SYS_CHROOT, CAP_KILL,         CAP_AUDIT_WRITE};

UniqueFd read_only_copy(const std::string& path) {
    UniqueFd tree = copy_of_mount(path);
    set_mount_attributes(tree.get(), "", MOUNT_ATTR_RDONLY);
    return tree;
}

void make_file(const std::string& path) {
    open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
}

constexpr const char* kEmptyFile = "/run/.gruca-empty";  // In the job's private /run.

// Covers what the kernel shows, which nobody can rename.
void mask(const std::string& path) {
    std::error_code failure;
    const fs::file_status status = fs::status(path, failure);
    if (!fs::exists(status)) return;
    if (fs::is_directory(status)) return hide(path);
    attach(read_only_copy(kEmptyFile), path);
}

// Makes the directory `target` if it is missing, in this view of the machine only.
void make_room(const fs::path& target) {
    std::error_code failure;
    fs::create_directories(target, failure);  // Below something of the job's own it just works.
    if (fs::is_directory(target)) return;
    fs::path ancestor = target;
    while (!fs::exists(ancestor)) ancestor = ancestor.parent_path();
    if (ancestor == "/") {
        throw Error(ErrorCode::invalid_argument,
                    "no directory of this machine could hold it; choose a path below /opt/ml: " +
                        target.string());
    }
    replace_directory(ancestor, "", fs::relative(target, ancestor));
}

struct Device {
    std::string name;
    UniqueFd tree;
};

std::vector<Device> copies_of_devices() {
    std::vector<Device> devices;
    const std::set<std::string> wanted(kDevices.begin(), kDevices.end());
    for (const auto& found : fs::directory_iterator("/dev")) {
        const std::string name = found.path().filename().string();
        if (!wanted.contains(name) && !name.starts_with("nvidia")) continue;
        devices.push_back({.name = name, .tree = copy_of_mount(found.path().string())});
    }
    return devices;
}

void mount_devices(const std::vector<Device>& devices) {
    // The devices below are mounts of their own: a node that a job makes here opens nothing.
    mount_new("tmpfs", "/dev", MS_NOSUID | MS_NOEXEC | MS_NODEV, "mode=755,size=64k");
    for (const Device& device : devices) {
        const std::string path = "/dev/" + device.name;
        struct stat facts = {};
        const bool is_directory = ::fstat(device.tree.get(), &facts) == 0 && S_ISDIR(facts.st_mode);
        is_directory ? void(fs::create_directory(path)) : make_file(path);
        attach(device.tree, path);
    }
    fs::create_directory("/dev/shm");
    mount_new("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
    fs::create_directory("/dev/pts");
    mount_new("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620");
    fs::create_symlink("pts/ptmx", "/dev/ptmx");
    fs::create_symlink("/proc/self/fd", "/dev/fd");
    fs::create_symlink("/proc/self/fd/0", "/dev/stdin");
    fs::create_symlink("/proc/self/fd/1", "/dev/stdout");
    fs::create_symlink("/proc/self/fd/2", "/dev/stderr");
}

void mount_proc() {
    mount_new("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
    for (const char* name : kProcReadOnly) {
        const std::string path = std::string("/proc/") + name;
        if (!fs::exists(path)) continue;
        const UniqueFd tree = copy_of_mount(path);
        set_mount_attributes(tree.get(), "", MOUNT_ATTR_RDONLY);
        attach(tree, path);
    }
}

// What the machine's /sys tells of interfaces is of the machine's network, so a job with one of its
// own gets a /sys of its own.
void mount_sys() {
    const std::string groups = "/sys/fs/cgroup";
    UniqueFd tree;
    if (fs::exists(groups)) tree = copy_of_mount(groups);
    mount_new("sysfs", "/sys", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
    if (tree.is_open() && fs::exists(groups)) attach(tree, groups);
}

// The name service of a machine with systemd is configured below /run.
void mount_run() {
    const std::string resolver = "/run/systemd/resolve";
    UniqueFd tree;
    if (fs::exists(resolver)) tree = copy_of_mount(resolver);
    mount_new("tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755");
    if (!tree.is_open()) return;
    fs::create_directories(resolver);
    attach(tree, resolver);
}

}  // namespace

void enter_sandbox(const KeeperOrder& order) {
    if (::sethostname(order.hostname.data(), order.hostname.size()) != 0) {
        throw_errno("cannot set the host name");
    }
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        throw_errno("cannot separate the mounts of the job from the machine's");
    }
    // What stays writable is copied before all becomes read-only, and before it is hidden.
    std::vector<UniqueFd> trees;
    for (const Bind& bind : order.binds) {
        trees.push_back(copy_of_mount(bind.source));
        set_mount_attributes(trees.back().get(), "", MOUNT_ATTR_NODEV);
    }
    const UniqueFd hosts = read_only_copy(order.hosts_file);
    const UniqueFd resolver =
        order.resolver_file.empty() ? UniqueFd() : read_only_copy(order.resolver_file);
    const std::vector<Device> devices = copies_of_devices();

    set_mount_attributes(AT_FDCWD, "/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV);
    mount_proc();
    if (order.network) mount_sys();
    mount_devices(devices);
    mount_run();
    make_file(kEmptyFile);
    for (const char* path : kMasked) mask(path);
    for (const std::string& path : order.hidden_paths) hide(path);
    for (std::size_t i = 0; i < trees.size(); ++i) {
        make_room(order.binds[i].target);
        attach(trees[i], order.binds[i].target);
    }
    attach(hosts, "/etc/hosts");
    if (resolver.is_open() && fs::exists(kResolverFile)) attach(resolver, kResolverFile);
    if (::chdir("/") != 0) throw_errno("cannot change to /");
}

void drop_privileges() {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("cannot set no_new_privs");
    const std::set<int> kept(kKeptCapabilities.begin(), kKeptCapabilities.end());
    const cap_t had = ::cap_get_proc();
    const cap_t left = ::cap_init();
    if (had == nullptr || left == nullptr) throw_errno("cannot read the capabilities");
    for (cap_value_t capability = 0; capability < ::cap_max_bits(); ++capability) {
        cap_flag_value_t permitted = CAP_CLEAR;
        ::cap_get_flag(had, capability, CAP_PERMITTED, &permitted);
        if (!kept.contains(capability)) {
            if (::cap_drop_bound(capability) != 0) throw_errno("cannot drop a capability");
        } else if (permitted == CAP_SET) {
            ::cap_set_flag(left, CAP_PERMITTED, 1, &capability, CAP_SET);
            ::cap_set_flag(left, CAP_EFFECTIVE, 1, &capability, CAP_SET);
        }
    }
    if (::cap_reset_ambient() != 0 || ::cap_set_proc(left) != 0) {
        throw_errno("cannot drop capabilities");
    }
    ::cap_free(had);
    ::cap_free(left);
    refuse_system_calls();
}

}  // namespace gruca::agent
