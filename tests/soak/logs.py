"""Agents, services and keepers are killed while ranks print; what is stored is what was printed.

A point of the kind `service` is one job, whose service is killed and started again many times while its rank
prints numbered lines of awkward sizes; one of the kinds `agent` and `keeper` is some jobs at once, each of which
loses its own at a moment of chance. A rank writes into a file of its own how many bytes its writes have taken.

`--each 30` of all kinds is about a thousand kills: 750 of the service, 180 of agents, 90 of keepers."""

import concurrent.futures
import contextlib
import functools
import os
import random
import signal
import sys
import time

import soak
from conftest import TERMINAL, running_service, wait_until

KILLS_OF_SERVICE = (20, 31)  # A point.
JOBS_AT_ONCE = {"agent": 6, "keeper": 3}  # Each is killed once.
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
    job = Job(service, name, chance, home, total=kills * chance.randrange(60_000, 300_000), pause=0.01)
    job.wait_for_bytes(1)
    for _ in range(kills):
        time.sleep(chance.random() * 0.1)
        service.kill()
        time.sleep(chance.random() * 0.05)
        service.start()
    assert job.wait()["TrainingJobStatus"] == "Completed"
    stored, expected = job.stored(), printed(job.seed, job.total)
    compare(stored, expected)
    assert len(stored) == job.written()
    return "service killed again and again, byte-equal", kills


def kill_one_of_each(file, check):
    """Each of some jobs loses the process that `file` names."""
    def kill_it(job, count, delay):
        job.wait_for_bytes(count)
        time.sleep(delay)
        os.kill(job.pid_of(file), signal.SIGKILL)

    def kill_them(service, name, chance, home):
        jobs, moments = [], []
        for i in range(JOBS_AT_ONCE[chance.kind]):
            (home / f"{i}").mkdir()
            jobs.append(Job(service, f"{name}-{i}", chance, home / f"{i}", total=1 << 40, pause=chance.choice([0.0003, 0.003, 0.03])))
            moments.append((chance.choice([1, 1000, 30_000, 300_000]), chance.random() * 0.05))
        with concurrent.futures.ThreadPoolExecutor(len(jobs)) as threads:
            list(threads.map(kill_it, jobs, *zip(*moments)))
        for job in jobs:
            assert job.wait()["TrainingJobStatus"] == "Failed"
            check(job)
        return f"{chance.kind}s killed, {check.__doc__}", len(jobs)
    return kill_them


def check_agent(job):
    """every byte of the pipes stored"""
    stored, written = job.stored(), job.written()
    assert len(stored) >= written, f"{written - len(stored)} bytes that were in the pipe are lost"
    compare(stored, printed(job.seed, len(stored))[:len(stored)])


def check_keeper(job):
    """prefixes and marks stored"""
    stored = job.stored()
    assert stored.endswith(MARK), stored[-200:]
    body = stored[:-len(MARK)]
    compare(body, printed(job.seed, len(body))[:len(body)])


KINDS = {"service": kill_services, "agent": kill_one_of_each("agent.pid", check_agent),
         "keeper": kill_one_of_each("work/keeper.pid", check_keeper)}


def compare(stored, expected):
    if stored == expected:
        return
    at = next((i for i, (a, b) in enumerate(zip(stored, expected)) if a != b), min(len(stored), len(expected)))
    raise AssertionError(f"{len(stored)} bytes stored, {len(expected)} printed, different from byte {at}: "
                         f"{stored[at:at + 40]!r} for {expected[at:at + 40]!r}")


@contextlib.contextmanager
def series(home):
    with running_service(home, "--slots", str(max(JOBS_AT_ONCE.values()))) as service:
        service.client = functools.cache(service.client)  # Making one costs more than a job.

        def point(chance, home):
            if service.process.poll() is not None:
                service.start()
            begun = time.monotonic()
            what, kills = KINDS[chance.kind](service, f"p{chance.number}-{chance.randrange(10**6)}", chance, home)
            return what, {f"kills of the {chance.kind}": kills, f"seconds a kill of the {chance.kind}": (time.monotonic() - begun) / kills}

        yield point


if __name__ == "__main__":
    soak.main(series, points=30 * len(KINDS), kinds=list(KINDS))
