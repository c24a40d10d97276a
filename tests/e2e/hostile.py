"""Programs that do not want to end. Run as a training program: hostile.py KIND [ARGUMENT]; says "up" when it is at
its worst. Every kind is bounded in memory, files and processes, so that a test can run many at once."""

import ctypes
import os
import pathlib
import signal
import socket
import sys
import threading
import time

MIB = 1 << 20
libc = ctypes.CDLL(None)


def up():
    print("up", flush=True)


def ignore_signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def sleep_for_ever():
    while True:
        time.sleep(1000)


def in_child(body):
    pid = os.fork()
    if pid == 0:
        try:
            body()
        finally:
            os._exit(0)
    return pid


def deaf():
    ignore_signals()
    up()
    sleep_for_ever()


def sessions():
    def child():
        os.setsid()
        ignore_signals()
        sleep_for_ever()
    for _ in range(3):
        in_child(child)
    deaf()


def daemon():
    def first():
        os.setsid()
        in_child(deaf)
    os.waitpid(in_child(first), 0)
    sleep_for_ever()


def fork_bomb():
    """As many as the node's limit allows."""
    ignore_signals()
    up()
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)


def runaway():
    """Never longer than a moment in one process."""
    def run():
        os.setsid()
        while True:
            if os.fork() > 0:
                os._exit(0)
            time.sleep(0.002)
    ignore_signals()
    in_child(run)
    up()
    sleep_for_ever()


def stopped():
    def child():
        os.kill(os.getpid(), signal.SIGSTOP)
        sleep_for_ever()
    for _ in range(3):
        in_child(child)
    up()
    os.kill(os.getpid(), signal.SIGSTOP)
    sleep_for_ever()


def stop_everybody():
    """Aims at whoever should end it."""
    ignore_signals()
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
        try:
            os.kill(1, number)
        except OSError:
            pass
    up()
    in_child(deaf)
    while True:
        os.kill(-1, signal.SIGCONT)
        time.sleep(0.01)


def tracer():
    ignore_signals()
    child = in_child(sleep_for_ever)
    libc.ptrace(16, child, None, None)  # PTRACE_ATTACH: only its tracer lets it go on.
    up()
    sleep_for_ever()


def vfork():
    ignore_signals()
    up()
    if libc.vfork() == 0:  # The parent waits in the kernel for what never comes.
        while True:
            libc.pause()
    sleep_for_ever()


def frozen():
    """Tries to become root of namespaces of its own, where it could mount control groups without limits and freeze itself
    against SIGKILL."""
    new_user, new_mounts, new_groups = 0x10000000, 0x00020000, 0x02000000
    ignore_signals()
    child = in_child(sleep_for_ever)
    if libc.unshare(new_user | new_mounts | new_groups) == 0:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text("0 0 1")
        pathlib.Path("/proc/self/gid_map").write_text("0 0 1")
        place = pathlib.Path("/tmp/groups")
        place.mkdir()
        for kind, options, file, word in (("cgroup", b"freezer", "freezer.state", "FROZEN"), ("cgroup2", None, "cgroup.freeze", "1")):
            if libc.mount(b"none", str(place).encode(), kind.encode(), 0, options) != 0:
                continue
            (place / "mine").mkdir()
            (place / "mine/cgroup.procs").write_text(str(child))
            (place / "mine" / file).write_text(word)
            break
    up()
    sleep_for_ever()


def threads():
    ignore_signals()
    for _ in range(100):
        threading.Thread(target=sleep_for_ever, daemon=True).start()
    deaf()


def hog():
    held = bytearray(os.urandom(1 << 12)) * (64 * MIB >> 12)
    up()
    while held:
        time.sleep(1)


def mute():
    ignore_signals()
    up()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(0, 100)
    sleep_for_ever()


def chatter():
    ignore_signals()
    up()
    while True:
        print("x" * 1000, flush=True)
        time.sleep(0.001)


def fill(directory):
    ignore_signals()
    with open(pathlib.Path(directory) / f"fill-{os.getpid()}", "wb") as file:
        for _ in range(32):
            file.write(b"x" * MIB)
        file.flush()
        up()
        sleep_for_ever()


def fill_tmp():
    fill("/tmp")


def fill_shm():
    fill("/dev/shm")


def heir():
    """Obeys, and leaves somebody who does not."""
    def leave(*_):
        in_child(daemon)
        os._exit(0)
    signal.signal(signal.SIGTERM, leave)
    up()
    sleep_for_ever()


def listener(port):
    """A child holds the socket of a parent that has gone."""
    server = socket.socket()
    server.bind(("127.0.0.1", int(port)))
    server.listen()
    in_child(deaf)
    sleep_for_ever()


def finisher(megabytes):
    """Ends by itself, with something to upload."""
    up()
    pathlib.Path("/opt/ml/model/weights").write_bytes(os.urandom(int(megabytes) * MIB))


def stuck(file):
    """Hangs in the kernel."""
    up()
    open(file, "rb", buffering=0).read(1)


def stuck_child(file):
    """Ends, and leaves a child that hangs in the kernel."""
    child = in_child(lambda: open(file, "rb", buffering=0).read(1))
    while "wait" not in pathlib.Path(f"/proc/{child}/wchan").read_text():
        time.sleep(0.05)
    time.sleep(1)  # Until its file system has taken the request: from then on nobody can kill it.
    up()


KINDS = ("deaf", "sessions", "daemon", "fork_bomb", "runaway", "stopped", "stop_everybody", "tracer", "vfork", "frozen", "threads",
         "hog", "mute", "chatter", "fill_tmp", "fill_shm", "heir")  # Those that need no argument.

if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
