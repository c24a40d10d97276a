"""How fast logs are: bytes a second stored from one node, and how soon a follower sees a line.

    figures(home) yields (figure, value, unit, peer, the peer's value); `home` is not below /tmp, where jobs have
    their own.
    Run alone, it prints a line of JSON a figure.

The rank writes blocks of 64 KiB as fast as it may; what counts is the time from the first byte to the
last in the service's file, and the processor time that agent, keeper and service take a byte, which a
busy machine changes less. Held against it is the disk: as many bytes in the pieces in which the service gets them,
synced as often as a node asks for it (`disk_synced_write`), measured in the same run. A follower is `gruca job logs --follow`, from the rank's clock before its
write to the line's arrival in our pipe; once with twenty lines a second and once with ten thousand."""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from conftest import APPS, running_service, wait_until  # noqa: E402
from figures import row  # noqa: E402

STORED_BYTES = 1 << 30
FOLLOW_SECONDS = 10
FOLLOW_GOAL_MS = 200
PIECE_BYTES, SYNC_BYTES = 1 << 20, 64 << 20  # kLogPieceBytes of agent/log_shipper.h, kLogFreeStepBytes of agent/log_space.h.

FLOOD = """
import os, sys
block = (b"x" * 127 + b"\\n") * 512
for _ in range(%d // len(block)):
    os.write(1, block)
"""

# Every line says when it was written.
TICKS = """
import os, time
end = time.time() + %d
while time.time() < end:
    for _ in range(%d):
        os.write(1, b"%%.6f a line of some forty characters more\\n" %% time.time())
    time.sleep(%f)
"""


def python_job(service, name, text):
    path = service.home / f"{name}.py"
    path.write_text(text)
    service.create(name, AlgorithmSpecification={
        "TrainingImage": "gruca/host", "TrainingInputMode": "File",
        "ContainerEntrypoint": [sys.executable, str(path)]})


def cpu_seconds(pids):
    """Of processes that may be gone: what is known of each by then."""
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            pids[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return sum(pids.values())


def store_flood(service, count=STORED_BYTES):
    """Returns the seconds and the seconds of processor time."""
    python_job(service, "flood", FLOOD % count)
    file = service.data / "logs/flood/algo-1.log"

    def size():
        return file.stat().st_size if file.exists() else 0

    wait_until(size, "the first byte")
    node, = (service.data / "nodes").glob("flood-*")
    pids = {int((node / file).read_text().split()[0]): 0 for file in ("agent.pid", "work/keeper.pid")}
    pids[service.process.pid] = 0
    begin, cpu_begin = time.perf_counter(), cpu_seconds(pids)
    while size() < count and time.perf_counter() - begin < 600:
        cpu = cpu_seconds(pids)
        time.sleep(0.01)
    seconds = time.perf_counter() - begin
    assert size() == count, f"{size()} bytes after {seconds} s"
    service.wait("flood")
    return seconds, cpu - cpu_begin


def disk_synced_write(directory, count):
    """The seconds that the disk takes for as many bytes, written and synced as a log is."""
    piece, path = b"x" * PIECE_BYTES, pathlib.Path(directory) / "synced"
    begin = time.perf_counter()
    with open(path, "wb", buffering=0) as file:
        for written in range(PIECE_BYTES, count + 1, PIECE_BYTES):
            file.write(piece)
            if written % SYNC_BYTES == 0:
                os.fsync(file.fileno())
        os.fsync(file.fileno())
    seconds = time.perf_counter() - begin
    path.unlink()
    return seconds


def follow_ms(service, name, burst, pause):
    python_job(service, name, TICKS % (FOLLOW_SECONDS, burst, pause))
    follower = subprocess.Popen([APPS / "gruca", "job", "logs", "--follow", "--json", name], env=service.env,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    seen = []
    for line in follower.stdout:
        now = time.time()
        message = json.loads(line).get("message", "")
        if message[:1].isdigit():
            seen.append((now - float(message.split()[0])) * 1000)
    follower.wait()
    service.wait(name)
    assert len(seen) > FOLLOW_SECONDS * burst, f"{len(seen)} lines seen"
    return sorted(seen)


def figures(home, stored_bytes=STORED_BYTES):
    with running_service(home) as service:
        seconds, cpu = store_flood(service, stored_bytes)
        disk = stored_bytes / disk_synced_write(service.data, stored_bytes) / 1e6
        yield "log_mb_per_s", stored_bytes / seconds / 1e6, "MB/s", "disk_synced_write", disk
        yield "log_cpu_ns_per_byte", cpu / stored_bytes * 1e9, "ns", None, None
        for name, burst, pause in (("quiet", 1, 0.05), ("busy", 100, 0.01)):
            times = follow_ms(service, name, burst, pause)
            suffix = "" if name == "quiet" else "_busy"
            yield f"log_follow_ms_p50{suffix}", statistics.median(times), "ms", "goal", FOLLOW_GOAL_MS
            yield f"log_follow_ms_p99{suffix}", times[len(times) * 99 // 100], "ms", "goal", FOLLOW_GOAL_MS


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="log-bench-", dir=APPS.parent) as scratch:
        for figure in figures(scratch, int(sys.argv[1]) << 20 if sys.argv[1:] else STORED_BYTES):
            print(json.dumps(row(*figure)), flush=True)
