"""Programs that do not want to end are ended: nothing of a job runs once it is over."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess

import hostile
import pytest
from conftest import APPS, TERMINAL, running_service, wait_until
from stuck_fs import StuckFs
from unhurt import strange_groups

HOSTILE = pathlib.Path(hostile.__file__)


STRICT = ("--stop-grace", "1", "--slots", "8", "--job-processes", "500")


@pytest.fixture(scope="module")
def strict_service(tmp_path_factory):
    with running_service(tmp_path_factory.mktemp("stops"), *STRICT) as service:
        yield service


def create(service, name, kind, *arguments, **members):
    body = service.request(name, **members)
    body["AlgorithmSpecification"]["ContainerEntrypoint"] = ["/usr/bin/python3", str(HOSTILE), kind, *map(str, arguments)]
    service.client("sagemaker").create_training_job(**body)


def processes_of(job):
    """Of this machine, by the kernel's accounting: what a program forks, and how, changes nothing about it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if f"/gruca/{job}-algo-" in (entry / "cgroup").read_text():
                found.append((entry / "stat").read_text()[:40])
        except OSError:
            pass
    return found


def remains_of(service, job):
    """What a job that is over may have left: directories of nodes, and groups of them."""
    roots = [pathlib.Path("/sys/fs/cgroup"), *pathlib.Path("/sys/fs/cgroup").glob("*/")]  # Version 2 and version 1.
    found = [str(path) for path in (service.data / "nodes").glob(f"{job}-algo-*")]
    return found + [str(path) for root in roots for path in root.glob(f"gruca/{job}-algo-*")]


def stop(service, name):
    service.client("sagemaker").stop_training_job(TrainingJobName=name)


DEFAULT_GRACE_S = 120
# Says for how long it has been told to end.
PATIENT = """
import signal, time
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(time.monotonic()))
print("up", flush=True)
while True:
    time.sleep(0.5)
    if told:
        print("told for", time.monotonic() - told[0], flush=True)
"""


@pytest.fixture(scope="module")
def patient_service(tmp_path_factory):
    """With the grace that a service has by default. What it takes, the other tests of this file take too."""
    with running_service(tmp_path_factory.mktemp("patient"), stop_grace=None) as service:
        (service.home / "patient.py").write_text(PATIENT)
        body = service.request("patient")
        body["AlgorithmSpecification"]["ContainerEntrypoint"] = ["/usr/bin/python3", str(service.home / "patient.py")]
        service.client("sagemaker").create_training_job(**body)
        service.wait_for_log("patient", "up")
        stop(service, "patient")
        yield service


def test_a_program_is_told_to_end_before_it_is_killed(patient_service):
    patient_service.wait_for_log("patient", "told for")
    assert patient_service.describe("patient")["TrainingJobStatus"] == "Stopping" and processes_of("patient")


@pytest.mark.parametrize("kinds", [hostile.KINDS[i::4] for i in range(4)])
def test_a_hostile_program_is_gone_when_its_job_is_stopped(strict_service, kinds):
    names = {kind: f"stop-{kind.replace('_', '-')}" for kind in kinds}
    for kind, name in names.items():
        create(strict_service, name, kind, instances=2 if kind in ("sessions", "heir") else 1)
    for name in names.values():
        strict_service.wait_for_log(name, "up")
        assert processes_of(name)
        stop(strict_service, name)
    for name in names.values():
        job = strict_service.wait(name)
        assert processes_of(name) == []
        assert job["TrainingJobStatus"] == "Stopped", job
        assert remains_of(strict_service, name) == []
    assert strange_groups() == []


def test_the_ports_of_a_stopped_program_are_free_again(tmp_path):
    with running_service(tmp_path, *STRICT, "--job-network", "none") as service:  # Jobs share the machine's ports.
        create(service, "listens", "listener", 20999)
        service.wait_for_log("listens", "up")
        with pytest.raises(OSError), socket.socket() as taken:
            taken.bind(("127.0.0.1", 20999))
        stop(service, "listens")
        service.wait("listens")
        with socket.socket() as server:
            server.bind(("127.0.0.1", 20999))


def test_a_stop_at_any_moment_ends_in_one_terminal_state(strict_service):
    names = [f"moment-{i}" for i in range(8)]
    for i, name in enumerate(names):
        create(strict_service, name, "finisher", i % 2)
    for i, name in enumerate(names):
        wait_until(lambda: i < 4 or "up" in strict_service.lines(name) or strict_service.describe(name)["TrainingJobStatus"] in TERMINAL,
                   f"{name} is up")
        for _ in range(2):
            with contextlib.suppress(strict_service.client("sagemaker").exceptions.ClientError):  # It may be over.
                stop(strict_service, name)
    for name in names:
        assert strict_service.wait(name)["TrainingJobStatus"] in ("Stopped", "Completed")
        assert processes_of(name) == [] and remains_of(strict_service, name) == []


def test_ctrl_c_of_a_client_that_follows_leaves_the_job_alone(strict_service):
    create(strict_service, "followed", "deaf")
    strict_service.wait_for_log("followed", "up")
    client = subprocess.Popen([APPS / "gruca", "job", "logs", "--follow", "followed"], env=strict_service.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert any("up" in line for line in iter(client.stdout.readline, ""))
    client.send_signal(signal.SIGINT)
    _, told = client.communicate(timeout=30)
    assert client.returncode == 130 and "the job goes on" in told and "gruca job stop followed" in told, told
    assert strict_service.describe("followed")["TrainingJobStatus"] == "InProgress" and processes_of("followed")
    stop(strict_service, "followed")
    assert strict_service.wait("followed")["TrainingJobStatus"] == "Stopped"


def last_message(service, name):
    return service.describe(name)["SecondaryStatusTransitions"][-1].get("StatusMessage", "")


def test_what_hangs_in_the_kernel_is_named_and_holds_its_slot_until_it_ends(tmp_path):
    stuck_fs = StuckFs(tmp_path / "stuck")
    try:
        with running_service(tmp_path, "--stop-grace", "1", "--slots", "4") as service:
            create(service, "stopped", "stuck", stuck_fs.file)
            create(service, "left", "stuck_child", stuck_fs.file)
            create(service, "killed", "stuck", stuck_fs.file)
            for name in ("stopped", "left", "killed"):
                service.wait_for_log(name, "up")
            stop(service, "stopped")
            agent = next(service.data.glob("nodes/killed-*/agent.pid"))
            os.kill(int(agent.read_text().split()[0]), signal.SIGKILL)
            wait_until(lambda: "hangs in the kernel" in last_message(service, "stopped"), "the user sees what is waited for")
            assert service.wait("stopped")["TrainingJobStatus"] == "Stopped"
            assert service.wait("left")["TrainingJobStatus"] == "Completed"
            killed = service.wait("killed")
            assert killed["TrainingJobStatus"] == "Failed" and "(python3) hangs in the kernel in" in killed["FailureReason"], killed
            for name in ("stopped", "left"):
                message = last_message(service, name)
                pid = message.split("process ")[1].split()[0]
                assert pathlib.Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "D", message
                assert "request_wait_answer" in message
            service.create("next", "echo mine", instances=2)
            wait_until(lambda: "held by what remains of" in last_message(service, "next"), "the next job waits")
            stuck_fs.end()
            assert service.wait("next")["TrainingJobStatus"] == "Completed"
            wait_until(lambda: not list(service.data.glob("nodes/*")), "no directory of a node is left")
    finally:
        stuck_fs.end()


@pytest.fixture(scope="module")
def small_service(tmp_path_factory):
    with running_service(tmp_path_factory.mktemp("small"), "--job-memory", "64") as service:
        yield service


EAT = "x = bytearray(1 << 30); import os; os.write(1, b'eaten')"


def test_a_program_killed_for_memory_fails_with_limit_peak_and_name(small_service):
    small_service.create("hungry", f'exec python3 -c "{EAT}"')
    reason = small_service.wait("hungry")["FailureReason"]
    assert "out of memory on algo-1: limit 64.0 MiB, peak 6" in reason and "killed the process python3" in reason, reason


def test_a_child_killed_for_memory_is_the_reason_when_its_parent_fails(small_service):
    small_service.create("parent", f'python3 -c "{EAT}" || exit 3')
    reason = small_service.wait("parent")["FailureReason"]
    assert "out of memory" in reason and "python3" in reason and "exit code: 3" in reason, reason


def test_a_child_killed_for_memory_is_in_the_log_when_its_parent_does_not_mind(small_service):
    small_service.create("tolerant", f'python3 -c "{EAT}"; echo went on')
    assert small_service.wait("tolerant")["TrainingJobStatus"] == "Completed"
    lines = small_service.lines("tolerant")
    assert "went on" in lines and "gruca: out of memory on algo-1: limit 64.0 MiB" in lines[-1], lines


def test_a_plain_kill_is_not_called_a_want_of_memory(small_service):
    small_service.create("killed", "kill -KILL $$")
    reason = small_service.wait("killed")["FailureReason"]
    assert "signal 9" in reason and "memory" not in reason, reason


@contextlib.contextmanager
def service_on_a_small_disk(home, mebibytes):
    data = home / "data"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=700", "none", data], check=True)
    try:
        with running_service(home) as service:
            yield service
    finally:
        subprocess.run(["umount", data], check=True)


def test_a_program_that_fills_the_disk_and_says_nothing_fails_with_the_upload(tmp_path):
    with service_on_a_small_disk(tmp_path, 48) as service:
        service.create("full", "cat /dev/urandom > /opt/ml/model/weights; echo swallowed; exit 0")
        job = service.wait("full")
        reason = job.get("FailureReason", "")
        assert job["TrainingJobStatus"] == "Failed", job
        assert "Artifact upload failed" in reason and "No space left" in reason, reason
        assert f"the disk of {service.data}/nodes/" in reason and "/opt/ml/model/weights" in reason, reason
        assert any("is full" in line for line in service.lines("full")), service.lines("full")
        service.create("after", "echo w > /opt/ml/model/w")
        assert service.wait("after")["TrainingJobStatus"] == "Completed"


def test_a_job_whose_last_checkpoint_could_not_be_stored_is_not_completed(tmp_path):
    with service_on_a_small_disk(tmp_path, 48) as service:
        service.create("unsaved", "head -c 26000000 /dev/urandom > /opt/ml/checkpoints/step-9; exit 0",
                       CheckpointConfig={"S3Uri": "s3://b/run", "LocalPath": "/opt/ml/checkpoints"})
        job = service.wait("unsaved")
        assert job["TrainingJobStatus"] == "Failed", job
        assert "Checkpoint upload failed: step-9" in job["FailureReason"] and "No space left" in job["FailureReason"], job


def test_the_reason_names_the_first_rank_to_fail_its_code_and_its_exception(strict_service):
    program = """
import os, sys, time
if os.environ["HOSTNAME"] == "algo-2":
    try:
        raise ValueError("rank 2 has no data")
    except ValueError:
        import traceback
        traceback.print_exc()
    for i in range(300):
        print("cleaning up", i)
    sys.exit(42)
time.sleep(1000)
"""
    path = strict_service.home / "ranks.py"
    path.write_text(program)
    body = strict_service.request("ranks", instances=2)
    body["AlgorithmSpecification"]["ContainerEntrypoint"] = ["/usr/bin/python3", str(path)]
    strict_service.client("sagemaker").create_training_job(**body)
    job = strict_service.wait("ranks")
    reason = job["FailureReason"]
    assert reason.startswith("AlgorithmError: the program on algo-2 failed: ValueError: rank 2 has no data"), reason
    assert "exit code: 42, on algo-2" in reason and "algo-1" not in reason, reason


def test_the_grace_of_a_stop_is_two_minutes_by_default(patient_service):
    """Last: meanwhile the other tests ran."""
    job = patient_service.wait("patient", DEFAULT_GRACE_S + 60)
    assert job["TrainingJobStatus"] == "Stopped" and processes_of("patient") == []
    lived = max(float(line.split()[-1]) for line in patient_service.lines("patient") if line.startswith("told for"))
    assert DEFAULT_GRACE_S - 2 < lived < DEFAULT_GRACE_S + 30, lived
