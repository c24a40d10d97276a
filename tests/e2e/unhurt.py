"""What must hold when something was killed, whatever it was."""

import contextlib
import pathlib
import re
import subprocess
import time

import botocore.exceptions

from conftest import TERMINAL, wait_until
from two_jobs import (CHECKPOINT_EVERY, LINES, PARTS, STEPS, create, kept_log, losses, manifests, nodes, stream, trainer_request,
                      weights)

CUT = b"\ngruca: the process that keeps the training program was killed; "  # The line goes on.


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
    """Of this service's nodes: another one may run on this machine."""
    roots = [pathlib.Path("/sys/fs/cgroup"), *pathlib.Path("/sys/fs/cgroup").glob("*/")]
    return [root / "gruca" / name for root in roots for name in service.node_names if (root / "gruca" / name).exists()]


def groups_elsewhere():
    """In hierarchies in which gruca makes none, such as the freezer's."""
    all_of_them = pathlib.Path("/sys/fs/cgroup")
    used = [(all_of_them / name).resolve() for name in ("memory", "pids", "cpuacct", "cpu", "unified")]
    systemds = [(all_of_them / name).resolve() for name in ("systemd", "blkio", "devices")]
    others = {root.resolve() for root in all_of_them.glob("*/") if (root / "cgroup.clone_children").exists()}
    return {str(path) for root in others.difference(used, systemds) for path in root.rglob("*/")}


BEFORE = groups_elsewhere()


def strange_groups():
    """Those that a job must have made: nobody else makes any while a test runs."""
    return sorted(groups_elsewhere() - BEFORE)


def temporaries(service):
    """What a killed writer would leave: a secret, perhaps."""
    found = list((service.data / "store").rglob(".tmp-*"))
    for directory in (service.data, service.home / "aws"):
        found += [path for path in directory.iterdir() if re.search(r"\.gruca-\w{6}$", path.name)]
    return [str(path) for path in found]


def links_of(*words):
    lines = subprocess.run(["ip", "-o", "link", "show", *words], capture_output=True, text=True).stdout.splitlines()
    return {line.split(":")[1].strip() for line in lines}


def left(service):
    """What is left of jobs that are over; empty when all is well."""
    mounts = [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if str(service.home) in line]
    links = links_of() - links_of("type", "bridge") - {"lo"}  # The bridges are the service's.
    return {
        "processes": marked(service), "nodes": [node.name for node in nodes(service)], "mounts": mounts,
        "groups": [str(group) for group in groups(service)], "links": sorted(links),
        "parts": [str(path) for path in (service.data / PARTS).rglob("*")] if (service.data / PARTS).exists() else [],
        "strange groups": strange_groups(), "temporaries": temporaries(service)}


def settle(service):
    def over(name):
        time.sleep(0.1)  # Asking costs more than a job does.
        with contextlib.suppress(botocore.exceptions.ClientError):  # It is being created still.
            return service.describe(name)["TrainingJobStatus"] in TERMINAL
        return False

    for name in ("trained", "chatter"):
        wait_until(lambda: over(name), f"{name} has ended", 90)


def check_nothing_left(service):
    wait_until(lambda: not any(left(service).values()), lambda: f"nothing is left: {left(service)}", 10)


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
        wrote, kept = watch.of(job, host, "log") or b"", kept_log(service, job, host)
        # The node's file begins with a hole once the service has the bytes.
        same = len(kept) == len(wrote) and kept.endswith(wrote.lstrip(b"\0"))
        assert same, f"the log of {job} {host} is not what its keeper wrote: {len(kept)} of {len(wrote)} bytes"
    assert kept_log(service, job, "algo-1").count(b'"event":"start"') <= 1, "the program ran twice"


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
    wait_until(lambda: nodes(service, "again"), "again has begun")
    wait_until(lambda: not nodes(service, "again"), "again has ended", 90)
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
