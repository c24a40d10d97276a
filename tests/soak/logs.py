"""Agents, services and keepers are killed while a rank prints; what is stored is what was printed.

A point is one job. In most the service is killed and started again several times while a rank prints numbered
lines of awkward sizes; in the others the agent or the keeper is killed at a moment of chance. The rank writes
into a file of its own how many bytes its writes have taken."""

import contextlib
import os
import random
import signal
import sys
import time

import soak
from conftest import TERMINAL, running_service, wait_until

KILLS_OF_SERVICE = (8, 16)  # A point.
MARK = b"\ngruca: the process that keeps the training program was killed; the last lines of the program may be missing\n"

RANK = r"""
import os, random, time
chance, total, pause = random.Random(%(seed)d), %(total)d, %(pause)f
done = 0
note = os.open("/opt/ml/written", os.O_WRONLY | os.O_CREAT, 0o600)
while done < total:
    data = %(draw)s
    while data:
        n = os.write(1, data)
        data, done = data[n:], done + n
        os.pwrite(note, b"%%020d" %% done, 0)
    time.sleep(pause * chance.random())
"""
# A piece: a numbered line, half a line, a bar, bytes that are no text, a block larger than the pipe's pages.
DRAW = ("""(lambda kind, n: [b"%%d line %%d\\n" %% (n, n), b"half %%d" %% n, b"\\r%%d%%%%" %% n, bytes([0, 128 + n %% 128, 10]),"""
        """ b"\\xc3", b"\\xa9\\n" * (n %% 7), b"%%d " %% n * 9000 + b"\\n", b"\\n"][kind])(chance.randrange(8), chance.randrange(10**6))""")


def printed(seed, length):
    """The first bytes of what the rank prints; it draws a pause after each piece as well."""
    chance, parts, size = random.Random(seed), [], 0
    draw = compile(DRAW.replace("%%", "%"), "draw", "eval")
    while size < length:
        parts.append(eval(draw, {"chance": chance}))
        size += len(parts[-1])
        chance.random()
    return b"".join(parts)


class Job:
    def __init__(self, service, name, chance, home, total, pause):
        self.service, self.name, self.seed, self.total = service, name, chance.randrange(2**32), total
        self.note = None
        script = home / "rank.py"
        script.write_text(RANK % dict(seed=self.seed, total=total, pause=pause, draw=DRAW.replace("%%", "%")))
        service.create(name, AlgorithmSpecification={
            "TrainingImage": "gruca/host", "TrainingInputMode": "File",
            "ContainerEntrypoint": [sys.executable, str(script)]})

    def written(self):
        for path in (self.service.data / "nodes").glob(f"{self.name}-*/work/ml/written"):
            with contextlib.suppress(OSError):
                self.note = self.note or open(path, "rb", 0)  # The node's directory goes with the job.
        return int(os.pread(self.note.fileno(), 20, 0) or 0) if self.note else 0

    def wait_for_bytes(self, count):
        wait_until(lambda: self.written() >= min(count, self.total), f"{count} bytes are printed")

    def stored(self):
        path = self.service.data / f"logs/{self.name}/algo-1.log"
        return path.read_bytes() if path.exists() else b""

    def pid_of(self, file):
        for path in (self.service.data / "nodes").glob(f"{self.name}-*/{file}"):
            return int(path.read_text().split()[0])
        raise AssertionError(f"no {file} of {self.name}")

    def wait(self):
        def ended():
            with contextlib.suppress(Exception):  # A describe may meet a service that is being killed.
                job = self.service.describe(self.name)
                return job if job["TrainingJobStatus"] in TERMINAL else None
        return wait_until(ended, f"{self.name} has ended", 120)


def kill_services(service, name, chance, home):
    kills = chance.randrange(*KILLS_OF_SERVICE)
    job = Job(service, name, chance, home, total=kills * chance.randrange(100_000, 600_000), pause=0.01)
    job.wait_for_bytes(1)
    for _ in range(kills):
        time.sleep(chance.random() * 0.3)
        service.kill()
        time.sleep(chance.random() * 0.1)
        service.start()
    assert job.wait()["TrainingJobStatus"] == "Completed"
    stored, expected = job.stored(), printed(job.seed, job.total)
    compare(stored, expected)
    assert len(stored) == job.written()
    return kills, f"{kills} kills of the service, byte-equal"


def kill_agent(service, name, chance, home):
    job = Job(service, name, chance, home, total=1 << 40, pause=chance.choice([0.0001, 0.003]))
    job.wait_for_bytes(chance.choice([1, 1000, 100_000, 3_000_000]))
    time.sleep(chance.random() * 0.05)
    os.kill(job.pid_of("agent.pid"), signal.SIGKILL)
    assert job.wait()["TrainingJobStatus"] == "Failed"
    stored, written = job.stored(), job.written()
    assert len(stored) >= written, f"{written - len(stored)} bytes that were in the pipe are lost"
    compare(stored, printed(job.seed, len(stored))[:len(stored)])
    return 1, "agent killed, every byte of the pipe stored"


def kill_keeper(service, name, chance, home):
    job = Job(service, name, chance, home, total=1 << 40, pause=0.001)
    job.wait_for_bytes(chance.choice([1, 100_000, 3_000_000]))
    os.kill(job.pid_of("work/keeper.pid"), signal.SIGKILL)
    assert job.wait()["TrainingJobStatus"] == "Failed"
    stored = job.stored()
    assert stored.endswith(MARK), stored[-200:]
    body = stored[:-len(MARK)]
    compare(body, printed(job.seed, len(body))[:len(body)])
    return 1, "keeper killed, a prefix and a mark"


def compare(stored, expected):
    if stored == expected:
        return
    at = next((i for i, (a, b) in enumerate(zip(stored, expected)) if a != b), min(len(stored), len(expected)))
    raise AssertionError(f"{len(stored)} bytes stored, {len(expected)} printed, different from byte {at}: "
                         f"{stored[at:at + 40]!r} for {expected[at:at + 40]!r}")


@contextlib.contextmanager
def series(home):
    with running_service(home) as service:
        total = {"kills": 0, "points": 0}

        def point(chance, home):
            if service.process.poll() is not None:
                service.start()
            total["points"] += 1
            kind = chance.choices([kill_services, kill_agent, kill_keeper], [6, 3, 1])[0]
            kills, what = kind(service, f"p{total['points']}-{chance.randrange(10**6)}", chance, home)
            total["kills"] += kills
            return what

        yield point
        print(f"{total['kills']} kills", file=sys.stderr)


if __name__ == "__main__":
    soak.main(series, points=140)
