"""Kills at moments made from seeds, and what must hold afterwards, whatever was killed.

Two jobs run in every point: `trained`, the built-in trainer on two instances with checkpoints, and
`chatter`, which prints a stream of bytes that is known and notes how much of it has gone into its
pipe. Used by test_killed.py and by the series in tests/soak."""

import contextlib
import inspect
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time

import botocore.exceptions

from conftest import APPS, TERMINAL, Service, wait_until

STEPS, CHECKPOINT_EVERY = 60, 10
LINES = 4000
CHANNELS = ("train", "validation", "tokenizer")
OUTPUT = "store/out.d/jobs.d/trained.d/output.d/model.tar.gz"
PARTS = "store/%2Egruca.d"
CUT = b"\ngruca: the process that keeps the training program was killed; "  # The line goes on.

# Prints what `stream` says, and how many bytes of it have been written to its pipe.
CHATTER = """
import os, random, time
{stream}
said = os.open("/opt/ml/output/data/said", os.O_CREAT | os.O_RDWR)
total = 0
for i, line in enumerate(stream({lines})):
    total += os.write(1, line)
    os.pwrite(said, b"%12d" % total, 0)
    if i % 50 == 0: time.sleep({pause})
"""


def stream(lines):
    chance = random.Random(5)
    return [b"%d " % i + b"x" * chance.choice((0, 1, 30, 300, 3000)) + b"\n" for i in range(lines)]


class Quick(Service):
    """Makes a client once for all services of one port and key: making one costs more than a job."""

    def __init__(self, home, port=0, made=None):
        super().__init__(home, "--stop-grace", "2", "--slots", "4", "--no-aws-profile")
        self.port, self.made = port, {} if made is None else made

    def client(self, name, **options):
        if name not in self.made:
            self.made[name] = super().client(name, **options)
        return self.made[name]


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


def put_data(service, home):
    chance, corpus = random.Random(1), home / "corpus"
    corpus.mkdir()
    words = "a job that is killed at any moment loses nothing and leaves nothing behind on the machine".split()
    for i in range(10):
        (corpus / f"{i}.txt").write_text("\n".join(" ".join(chance.choice(words) for _ in range(12)) + "." for _ in range(60)))
    service.gruca("data", "tokenizer", "--vocabulary", "300", "--output", home / "tokenizer.json", "--input", corpus)
    service.gruca("data", "tokenize", "--tokenizer", home / "tokenizer.json", "--output", home / "shards",
                  "--validation-fraction", "0.1", "--input", corpus)
    for channel in ("train", "validation"):
        service.gruca("store", "cp", "-r", home / "shards" / channel, f"s3://lab/{channel}")
    service.gruca("store", "cp", home / "tokenizer.json", "s3://lab/tokenizer/tokenizer.json")


# ---- the jobs -----------------------------------------------------------------------------------


def trainer_request(service, name):
    request = service.request(name, instances=2)
    request["AlgorithmSpecification"]["TrainingImage"] = "gruca/llm-trainer"
    request["HyperParameters"] = {
        "architecture": "llama", "layers": "2", "width": "32", "heads": "2", "context_length": "32", "max_steps": str(STEPS),
        "global_batch_size": "8", "micro_batch_size": "4", "learning_rate": "0.01", "warmup_steps": "3", "eval_interval": "0",
        "checkpoint_interval": str(CHECKPOINT_EVERY), "checkpoints_kept": "2", "seed": "3", "log_interval": "1"}
    request["InputDataConfig"] = [
        {"ChannelName": c, "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://lab/{c}/"}}} for c in CHANNELS]
    request["CheckpointConfig"] = {"S3Uri": "s3://ckpt/trained"}
    return request


def chatter_request(service):
    script = service.home / "chatter.py"
    script.write_text(CHATTER.format(stream=inspect.getsource(stream), lines=LINES, pause=0.01))
    request = service.request("chatter", instances=2)
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = [sys.executable, str(script)]
    return request


def create(service, request):
    """Until the service has it: a client that hears nothing asks again, and `in use` means that it was heard."""
    def created():
        try:
            service.client("sagemaker").create_training_job(**request)
        except botocore.exceptions.ClientError as error:
            return error.response["Error"]["Code"] == "ResourceInUse"
        except botocore.exceptions.BotoCoreError:  # The service is away.
            return False
        return True
    wait_until(created, f"{request['TrainingJobName']} is created")


def begin(service):
    create(service, chatter_request(service))
    create(service, trainer_request(service, "trained"))


# ---- where a job is, as the file system shows it ------------------------------------------------


def nodes(service, job=""):
    with contextlib.suppress(FileNotFoundError):
        return [node for node in (service.data / "nodes").iterdir() if node.name.startswith(job)]
    return []


def any_file(service, job, path):
    return any((node / path).exists() for node in nodes(service, job))


def manifests(service):
    return list((service.data / "store/ckpt.d").rglob("manifest.json"))


# Each begins when its condition first holds.
PHASES = {
    "queue": lambda service: True,
    "start": lambda service: nodes(service, "trained"),
    "download": lambda service: any_file(service, "trained", "work/ml"),
    "connect": lambda service: any_file(service, "trained", "work/keeper.pid"),
    "training": lambda service: b'"event":"step"' in first_log(service),
    "checkpoint": lambda service: manifests(service),
    "upload": lambda service: any_file(service, "trained", "work/ending.json"),
    "assemble": lambda service: (service.data / PARTS).exists(),
    "release": lambda service: (service.data / OUTPUT).exists(),
}


def first_log(service):
    for node in nodes(service, "trained-algo-1"):
        with contextlib.suppress(FileNotFoundError):
            return (node / "work/log").read_bytes()
    return b""


def measure(service):
    """How long each phase takes until the next one begins, seconds."""
    begun = {}

    def all_begun():
        for phase, holds in PHASES.items():
            if phase not in begun and holds(service):
                begun[phase] = time.monotonic()
        return len(begun) == len(PHASES)

    wait_until(all_begun, f"every phase begins; so far {list(begun)}")
    wait_until(lambda: not nodes(service), "the nodes are gone")
    moments = sorted(begun.values()) + [time.monotonic()]
    return {phase: min(end for end in moments if end > start) - start for phase, start in begun.items()}


class Watch:
    """Keeps what nodes write, by hard links, so that it can be compared when the nodes are gone."""

    def __init__(self, service):
        self.service, self.kept = service, service.home / "kept"
        self.kept.mkdir()
        self.going = True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while self.going:
            self.look()
            time.sleep(0.005)

    def look(self):
        for node in nodes(self.service):
            for name in ("work/log", "work/ml/output/data/said", "agent.log"):
                kept = self.kept / f"{node.name}.{name.rsplit('/')[-1]}"
                with contextlib.suppress(OSError):
                    if not kept.exists():
                        os.link(node / name, kept)

    def stop(self):
        self.going = False
        self.thread.join()

    def of(self, job, host, name):
        """The file's bytes; each instance of a job has one node, once."""
        found = list(self.kept.glob(f"{job}-{host}-??????.{name}"))
        assert len(found) <= 1, f"{job} {host} had more than one node: {found}"
        return found[0].read_bytes() if found else None


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
        settle(service)
        return "all, and the machine"


KINDS = {"service": kill_service, "agent": kill_one("agent"), "rank": kill_rank, "all": kill_all}


@contextlib.contextmanager
def reboot(service):
    """What a restart of the machine does: nothing runs, control groups are gone, process ids are used again."""
    wait_until(lambda: not marked(service), "all that was killed has ended")
    for group in groups(service):
        group.rmdir()
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


# ---- what must hold -----------------------------------------------------------------------------


def marked(service):
    """Processes that are of this service's nodes by their words, their mounts or where they work."""
    found, mark = [], str(service.data / "nodes")
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "cmdline").read_bytes() or mark in (entry / "mountinfo").read_text(errors="replace"):
                found.append((int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")))
    return found


def groups(service):
    return [path for name in ("trained", "chatter", "again") for path in pathlib.Path("/sys/fs/cgroup").glob(f"*/gruca-{name}-algo-*")
            ] + [path for path in pathlib.Path("/sys/fs/cgroup").glob("gruca-*-algo-*")]


def left(service):
    """What is left of jobs that are over; empty when all is well."""
    mounts = [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if str(service.home) in line]
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout.splitlines()
    store = service.data / "store"
    return {
        "processes": marked(service), "nodes": [node.name for node in nodes(service)], "mounts": mounts,
        "groups": [str(group) for group in groups(service)], "links": [link for link in links if " lo:" not in link],
        "parts": [str(path) for path in (service.data / PARTS).rglob("*")] if (service.data / PARTS).exists() else [],
        "temporaries": [str(path) for path in store.rglob(".tmp-*")]}


def settle(service):
    def over(name):
        with contextlib.suppress(botocore.exceptions.ClientError):  # It is being created still.
            return service.describe(name)["TrainingJobStatus"] in TERMINAL
        return False

    for name in ("trained", "chatter"):
        wait_until(lambda: over(name), f"{name} has ended", 90)


def check_nothing_left(service):
    wait_until(lambda: not any(left(service).values()), f"nothing is left: {left(service)}", 10)


def check_over(service):
    """One terminal state, and another service says the same."""
    names = [job["TrainingJobName"] for job in service.client("sagemaker").list_training_jobs(MaxResults=100)["TrainingJobSummaries"]]
    before = {}
    for name in names:
        job = before[name] = service.describe(name)
        assert job["TrainingJobStatus"] in TERMINAL, job
        assert sum(row["Status"] in TERMINAL for row in job["SecondaryStatusTransitions"]) == 1, job
    service.kill()
    service.start()
    for name in names:
        again = service.describe(name)
        again.pop("ResponseMetadata"), before[name].pop("ResponseMetadata")
        assert again == before[name], f"changed after its end: {before[name]} -> {again}"


def kept_log(service, job, host):
    with contextlib.suppress(FileNotFoundError):
        return (service.data / f"logs/{job}/{host}.log").read_bytes()
    return b""


def check_chatter(service, watch, host, keeper_may_die):
    log, whole = kept_log(service, "chatter", host), b"".join(stream(LINES))
    said = int(watch.of("chatter", host, "said") or 0)
    body, cut, _ = log.partition(CUT)
    job = service.describe("chatter")
    if job["TrainingJobStatus"] == "Completed":
        assert log == whole, f"{len(log)} of {len(whole)} bytes"
        return
    assert body == whole[:len(body)], f"what was kept is not what was printed, of {len(body)} bytes"
    if cut:
        assert keeper_may_die, "a log is marked as cut, and its keeper lived"
        assert len(body) >= said - (1 << 20), f"{len(body)} bytes kept, {said} printed"
    else:
        assert len(body) >= said, f"{len(body)} bytes kept, {said} printed, and no mark; {job}"


def check_trained_log(service, watch, job="trained"):
    for host in ("algo-1", "algo-2"):
        wrote = watch.of(job, host, "log")
        assert kept_log(service, job, host) == (wrote or b""), f"the log of {job} {host} is not what its keeper wrote"
    assert kept_log(service, job, "algo-1").count(b'"event":"start"') <= 1, "the program ran twice"


def events(service, name, kind):
    log = kept_log(service, name, "algo-1").decode(errors="replace")
    found = []
    for line in log.splitlines():
        if line.startswith('{"event":"%s"' % kind):
            with contextlib.suppress(ValueError):  # The last line of a killed program.
                found.append(json.loads(line))
    return found


def losses(service, name):
    return {event["step"]: event["loss"] for event in events(service, name, "step")}


def weights(service, name):
    with tarfile.open(service.data / OUTPUT.replace("trained", name)) as tar:
        return tar.extractfile("model.safetensors").read()


def check_training(service, facts):
    """What was trained is bit for bit what the unbroken run trains, and a new job goes on from the newest checkpoint."""
    seen = losses(service, "trained")
    assert list(seen) == list(range(1, len(seen) + 1)), f"steps are missing or doubled: {list(seen)}"
    assert seen == {step: facts.losses[step] for step in seen}, "the losses are not those of the unbroken run"
    if service.describe("trained")["TrainingJobStatus"] == "Completed":
        assert len(seen) == STEPS and weights(service, "trained") == facts.model
        return "completed"
    newest = max((int(re.search(r"step-(\d+)", str(path)).group(1)) for path in manifests(service)), default=0)
    assert newest >= len(seen) // CHECKPOINT_EVERY * CHECKPOINT_EVERY - CHECKPOINT_EVERY, f"{newest} of {len(seen)}"
    create(service, trainer_request(service, "again"))
    job = service.wait("again")
    assert job["TrainingJobStatus"] == "Completed", job
    resumed = losses(service, "again")
    assert resumed == {step: facts.losses[step] for step in range(newest + 1, STEPS + 1)}, f"from {newest}: {list(resumed)[:3]}"
    assert weights(service, "again") == facts.model, "the resumed model differs from the unbroken one"
    return "went on"


def check_reason(service, killed):
    """A job that failed says why: whom it lost, or how the program ended."""
    for name in ("trained", "chatter"):
        job = service.describe(name)
        assert job["TrainingJobStatus"] in ("Completed", "Failed"), job
        if job["TrainingJobStatus"] == "Completed":
            continue
        assert killed not in ("service",) and not killed.startswith("no "), job
        reason = job["FailureReason"]
        wanted = {"rank": "algo-|signal|exit code", "keeper": "keep"}.get(killed, "algo-")
        assert re.search(wanted, reason), f"killed {killed}: {reason}"


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
        settle(service)
        check_nothing_left(service)
        check_over(service)
        check_reason(service, killed)
        for host in ("algo-1", "algo-2"):
            check_chatter(service, watch, host, killed.startswith("all") or killed == "keeper")
        check_trained_log(service, watch)
        outcome = check_training(service, facts)
        check_nothing_left(service)
        return f"{killed} at {phase}: {outcome}"
    finally:
        watch.stop()
        end(service)


def end(service):
    """Whatever has gone wrong: nothing of the point runs on."""
    if service.process.poll() is None:
        service.kill()
    for kind in ("agent", "keeper"):
        for pid in pids(service, kind):
            kill(pid)
