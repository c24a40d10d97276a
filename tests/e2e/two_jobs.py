"""Two jobs that tests kill, and where they are. `trained` is the built-in trainer on two instances with
checkpoints; `chatter` prints a stream of bytes that is known and notes how much of it is in its pipe."""

import contextlib
import inspect
import json
import os
import random
import sys
import tarfile
import threading
import time

import botocore.exceptions

from conftest import Service, wait_until

STEPS, CHECKPOINT_EVERY = 60, 10
LINES = 4000
CHANNELS = ("train", "validation", "tokenizer")
OUTPUT = "store/out.d/jobs.d/trained.d/output.d/model.tar.gz"
PARTS = "store/%2Egruca.d"

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
        self.node_names = set()  # Of all nodes there ever were.

    def client(self, name, **options):
        if name not in self.made:
            self.made[name] = super().client(name, **options)
        return self.made[name]


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
            time.sleep(0.01)

    def look(self):
        for node in nodes(self.service):
            self.service.node_names.add(node.name)
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


# ---- what a job leaves --------------------------------------------------------------------------

def kept_log(service, job, host):
    with contextlib.suppress(FileNotFoundError):
        return (service.data / f"logs/{job}/{host}.log").read_bytes()
    return b""


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
