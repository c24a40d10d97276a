"""What a program prints arrives whole, in order and once, whatever it prints and whatever fails meanwhile."""

import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from conftest import running_service, wait_until

MIB = 1 << 20
HELD_MAX = 512 * MIB  # Of src/agent/output_log.h.
RSS_GROWTH_MAX = 64 * MIB


def run_python(service, name, text):
    path = service.home / f"{name}.py"
    path.write_text(text)
    service.create(name, AlgorithmSpecification={
        "TrainingImage": "gruca/host", "TrainingInputMode": "File",
        "ContainerEntrypoint": [sys.executable, str(path)]})


def stored(service, name):
    return service.data / f"logs/{name}/algo-1.log"


def local_log(service, name):
    return next((service.data / "nodes").glob(f"{name}-*/work/log"), None)


def processes(service, program, *words):
    """Pids of a program whose command line names this service's data directory."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if command and pathlib.Path(command[0]).name == program and str(service.data) in " ".join(command):
            found.append(int(entry.name))
    return found


def the_agent(service):
    """Its pid. A child that has not become another program yet looks like it for a moment."""
    return wait_until(lambda: (found := processes(service, "gruca-agent"))[1:] == [] and found and found[0], "there is one agent")


def rss(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else \
            hashlib.sha256(file.read()).hexdigest()


def keeper_pid(service, name):
    file = next((service.data / "nodes").glob(f"{name}-*/work/keeper.pid"))
    return int(file.read_text().split()[0])


AWKWARD = r"""
import os
def say(data):
    while data: data = data[os.write(1, data):]
say(b"\x80bad \xff utf-8 and \0 and \x1b[31mred\x1b[0m\n")
say("caf\u00e9".encode()[:-1]); say("caf\u00e9".encode()[-1:] + b"\n")
say(b"".join(b"\r%3d%%" % (i % 100) for i in range(1000)) + b"\n")
say(b"\r" * 1000000 + b"after a million returns\n")
say(b"0123456789abcdef" * 65536 * 100 + b"\n")
os.write(2, b"an error\n"); say(b"no line end")
"""


def test_awkward_bytes_and_a_line_of_100_mib_are_stored_whole_and_shown_as_valid_text(service):
    run_python(service, "awkward", AWKWARD)
    assert service.wait("awkward")["TrainingJobStatus"] == "Completed"
    expected = hashlib.sha256()
    for part in (b"\x80bad \xff utf-8 and \0 and \x1b[31mred\x1b[0m\n", "caf\u00e9\n".encode(),
                 b"".join(b"\r%3d%%" % (i % 100) for i in range(1000)) + b"\n", b"\r" * 1000000 + b"after a million returns\n",
                 b"0123456789abcdef" * 65536 * 100, b"\nan error\nno line end"):
        expected.update(part)
    assert digest(stored(service, "awkward")) == expected.hexdigest()
    before = rss(service.process.pid)
    lines = service.lines("awkward")
    assert lines[0] == "\ufffdbad \ufffd utf-8 and \0 and \x1b[31mred\x1b[0m" and lines[1] == "caf\u00e9"
    assert lines[2:1002] == [f"{i % 100:3}%" for i in range(1000)]
    assert lines[1002] == "after a million returns" and lines[-2:] == ["an error", "no line end"]
    pieces = lines[1003:-2]
    assert {len(piece) for piece in pieces} == {MIB} and len(pieces) == 100
    assert rss(service.process.pid) - before < RSS_GROWTH_MAX


BEGIN_WHEN_TOLD = """
import os, time
print("begin", flush=True)
while not os.path.exists("/opt/ml/go"): time.sleep(0.05)
"""
FLOOD = """
import os
block = b"".join(b"%%09d %%s\\n" %% (i, b"x" * 53) for i in range(1024))
for _ in range(%d // len(block)): os.write(1, block)
"""


@pytest.fixture(scope="module")
def flooded(tmp_path_factory):
    """A job prints more than its node may hold while the service is away for a while."""
    with running_service(tmp_path_factory.mktemp("flood")) as service:
        total = HELD_MAX + 64 * MIB
        seen = {"total": total, "held": []}
        run_python(service, "flood", BEGIN_WHEN_TOLD + FLOOD % total)
        wait_until(lambda: stored(service, "flood").exists(), "the program has begun")
        agent = the_agent(service)
        before = rss(agent)
        service.kill()
        local = local_log(service, "flood")
        (local.parent / "ml/go").touch()
        wait_until(lambda: local.stat().st_size > HELD_MAX, "the program is held back", 200)
        size = wait_until(lambda: (lambda now: now if now == settled(local) else None)(local.stat().st_size), "it waits")
        seen["held"] = size
        seen["agent_growth"] = rss(agent) - before
        service.start()
        before = rss(service.process.pid)
        seen["job"] = service.wait("flood", 400)
        seen["service_growth"] = rss(service.process.pid) - before
        yield service, seen


def settled(path):
    time.sleep(0.3)
    return path.stat().st_size


def test_a_program_that_prints_more_than_its_node_may_hold_waits_for_the_service(flooded):
    service, seen = flooded
    assert HELD_MAX < seen["held"] < HELD_MAX + 4 * MIB
    assert seen["job"]["TrainingJobStatus"] == "Completed"
    expected = hashlib.sha256(b"begin\n")
    block = b"".join(b"%09d %s\n" % (i, b"x" * 53) for i in range(1024))
    for _ in range(seen["total"] // len(block)):
        expected.update(block)
    assert digest(stored(service, "flood")) == expected.hexdigest()


def test_a_flood_keeps_agent_and_service_small(flooded):
    service, seen = flooded
    assert seen["agent_growth"] < RSS_GROWTH_MAX and seen["service_growth"] < RSS_GROWTH_MAX, seen


NUMBERED = """
import os, time
for i in range(%d):
    os.write(1, b"%%08d %%s\\n" %% (i, b"y" * (i * 7919 %% 900)))
    if i %% 50 == 0: time.sleep(0.01)
"""


def numbered(count):
    return b"".join(b"%08d %s\n" % (i, b"y" * (i * 7919 % 900)) for i in range(count))


def test_a_service_that_is_away_for_seconds_misses_nothing(service):
    count = 10000
    run_python(service, "away", NUMBERED % count)
    for _ in range(3):
        wait_until(lambda: stored(service, "away").exists(), "something is stored")
        service.kill()
        settled(service.home)
        service.start()
    assert service.wait("away")["TrainingJobStatus"] == "Completed"
    assert stored(service, "away").read_bytes() == numbered(count)


def test_a_full_disk_of_the_service_delays_a_log_and_loses_nothing(tmp_path):
    logs = tmp_path / "data/logs"
    logs.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "logs", logs], check=True)
    try:
        with running_service(tmp_path) as service:
            count = 6000  # 2.7 MB.
            run_python(service, "full", NUMBERED % count)
            wait_until(lambda: stored(service, "full").exists() and stored(service, "full").stat().st_size > MIB // 2,
                       "the disk is full")
            settled(service.home)
            assert service.describe("full")["TrainingJobStatus"] == "InProgress"
            subprocess.run(["mount", "-o", "remount,size=64m", logs], check=True)
            assert service.wait("full")["TrainingJobStatus"] == "Completed"
            assert stored(service, "full").read_bytes() == numbered(count)
    finally:
        subprocess.run(["umount", "-l", logs], check=True)


def test_a_job_that_has_ended_has_its_last_line_at_once(service):
    for i in range(8):
        service.create(f"ended-{i}", "seq 1 2000; echo last; exit %d" % (i % 2))
        job = service.wait(f"ended-{i}")
        assert service.lines(f"ended-{i}")[-2:] == ["2000", "last"], job["TrainingJobStatus"]


def test_a_killed_keeper_leaves_what_came_before_and_a_mark(service):
    run_python(service, "keeper", NUMBERED % 10**7)
    wait_until(lambda: stored(service, "keeper").exists() and stored(service, "keeper").stat().st_size > MIB, "a MiB is stored")
    os.kill(keeper_pid(service, "keeper"), signal.SIGKILL)
    job = service.wait("keeper")
    assert job["TrainingJobStatus"] == "Failed"
    text = stored(service, "keeper").read_bytes()
    body, mark, rest = text.partition(b"gruca: ")
    assert mark and b"may be missing" in rest
    expected = numbered(len(body) // 300)
    assert expected.startswith(body.rstrip(b"\n")) and len(body) > MIB
