"""Kills at moments made from seeds. Used by test_killed.py and by the series in tests/soak."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import unhurt
from conftest import wait_until
from two_jobs import PHASES, STEPS, Quick, Watch, begin, losses, measure, nodes, put_data, weights


class Facts:
    """How the jobs go when nobody is killed, and the data directory that every point starts with."""

    def __init__(self, home):
        self.home = home
        service = Quick(home).start()
        self.port, self.made = service.port, service.made
        try:
            put_data(service, home)
            service.stop()
            shutil.copytree(service.data, home / "fresh")
            service.start()
            watch = Watch(service)
            begin(service)
            self.phases = measure(service)
            for name in ("trained", "chatter"):
                job = service.wait(name)
                assert job["TrainingJobStatus"] == "Completed", job
            watch.stop()
            self.losses = losses(service, "trained")
            self.model = weights(service, "trained")
            assert sorted(self.losses) == list(range(1, STEPS + 1))
        finally:
            service.stop()


# ---- whom to kill -------------------------------------------------------------------------------


def pid_in(file):
    """Of a process that is alive and the one meant, as docs/formats/node-directory.md says."""
    with contextlib.suppress(OSError, ValueError):
        pid, start = file.read_text().split()[:2]
        facts = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        if facts[19] == start and facts[0] != "Z":
            return int(pid)
    return None


def children(pid):
    with contextlib.suppress(OSError):
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def pids(service, kind, job=""):
    found = []
    for node in nodes(service, job):
        agent, keeper = pid_in(node / "agent.pid"), pid_in(node / "work/keeper.pid")
        found += {"agent": [agent], "keeper": [keeper], "rank": children(keeper) if keeper else []}[kind]
    return [pid for pid in found if pid]


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_service(service, chance):
    if chance.random() < 0.2:  # It hangs first.
        service.process.send_signal(signal.SIGSTOP)
        time.sleep(chance.uniform(0, 1))
    service.kill()
    if chance.random() < 0.3:  # And the next one as it starts.
        short = service.spawn()
        time.sleep(chance.uniform(0, 0.05))
        short.kill()
        short.wait()
    time.sleep(chance.uniform(0, 0.3))
    service.start()
    return "service"


def kill_one(kind):
    def kill_it(service, chance):
        found = sorted(pids(service, kind))
        if not found:
            return f"no {kind}"
        kill(chance.choice(found))
        return kind
    return kill_it


def kill_rank(service, chance):
    return kill_one("keeper" if chance.random() < 0.25 else "rank")(service, chance)


def kill_all(service, chance):
    everything = [pid for kind in ("agent", "keeper", "rank") for pid in pids(service, kind)] + [service.process.pid]
    chance.shuffle(everything)
    for pid in everything:
        kill(pid)
    service.process.wait()
    if chance.random() < 0.5:
        service.start()
        return "all"
    with reboot(service):
        service.start()
        unhurt.settle(service)
        return "all, and the machine"


KINDS = {"service": kill_service, "agent": kill_one("agent"), "rank": kill_rank, "all": kill_all}


def remove_group(group, seconds=30):
    """A process may be in its control group for some moments after it has ended."""
    def is_removed():
        with contextlib.suppress(OSError):
            group.rmdir()
        return not group.exists()

    def who():
        with contextlib.suppress(OSError):
            return ", ".join(f"{pid} ({comm_of(pid)})" for pid in (group / "cgroup.procs").read_text().split())
        return "nobody, it cannot be read"

    wait_until(is_removed, lambda: f"the control group {group} is empty; in it are still: {who() or 'groups of its own'}", seconds)


def comm_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return "gone"


@contextlib.contextmanager
def reboot(service):
    """What a restart of the machine does: nothing runs, control groups are gone, process ids are used again."""
    def all_ended():
        for pid, _ in unhurt.marked(service):  # Also what had been started just now.
            kill(pid)
        return not unhurt.marked(service)

    wait_until(all_ended, "all that was killed has ended")
    for group in unhurt.groups(service):
        remove_group(group)
    innocent = subprocess.Popen(["sleep", "600"])
    try:
        for node in nodes(service):
            for file in ("agent.pid", "work/keeper.pid"):
                if (node / file).exists():
                    (node / file).write_text(f"{innocent.pid} 1\n")
        yield
        assert innocent.poll() is None, "a process that only has an old process id was killed"
    finally:
        innocent.kill()
        innocent.wait()


# ---- one point ----------------------------------------------------------------------------------


def point(facts, kind, chance, home):
    phases = [phase for phase in PHASES if kind in ("service", "all") or phase not in ("queue",)]
    phase = chance.choice(phases)
    delay = chance.uniform(0, facts.phases[phase])
    shutil.copytree(facts.home / "fresh", home / "data")
    service = Quick(home, facts.port, facts.made).start()
    watch = Watch(service)
    try:
        creating = threading.Thread(target=begin, args=(service,), daemon=True)
        creating.start()
        wait_until(lambda: PHASES[phase](service), f"the phase {phase} begins")
        time.sleep(delay)
        killed = KINDS[kind](service, chance)
        creating.join()
        unhurt.settle(service)
        unhurt.check_nothing_left(service)
        unhurt.check_over(service)
        unhurt.check_reason(service, killed)
        for host in ("algo-1", "algo-2"):
            unhurt.check_chatter(service, watch, host, killed.startswith("all") or killed == "keeper")
        unhurt.check_trained_log(service, watch)
        outcome = unhurt.check_training(service, facts)
        unhurt.check_nothing_left(service)
        return f"{killed} at {phase}: {outcome}"
    finally:
        watch.stop()
        end(service)


def end(service):
    """Whatever has gone wrong: nothing of the point runs on, and the service takes its bridges down."""
    for kind in ("agent", "keeper"):
        for pid in pids(service, kind):
            kill(pid)
    service.stop()
