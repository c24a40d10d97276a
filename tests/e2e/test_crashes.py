"""Something is killed while a job runs; nothing is lost and nothing is left."""

import os
import pathlib
import signal

from conftest import wait_until


def agent_pid(service, host):
    node, = (service.data / "nodes").glob(f"*{host}*")
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words and words[0].endswith(b"gruca-agent") and str(node / "config.json").encode() in words:
                return int(entry.name)
    raise AssertionError(f"no agent of {host} in {service.data}/nodes")


def test_a_killed_service_comes_back_to_a_job_that_went_on(service):
    script = "i=0; while [ $i -lt 60 ]; do echo tick $i; i=$((i+1)); sleep 0.05; done; echo kept > /opt/ml/model/m"
    service.create("survivor", script, instances=2)
    service.wait_for_log("survivor", "tick 5")
    service.kill()
    service.start()
    job = service.wait("survivor")
    assert job["TrainingJobStatus"] == "Completed", job
    for host in ("algo-1", "algo-2"):
        assert service.lines("survivor", host) == [f"tick {i}" for i in range(60)]
    assert service.survivors() == []


def test_a_job_that_ends_while_the_service_is_away_is_completed_when_it_returns(service):
    service.create("away", "echo started; sleep 3; echo ended; echo m > /opt/ml/model/m")
    service.wait_for_log("away", "started")
    service.kill()
    log = next((service.data / "nodes").glob("*/log"), None) or next((service.data / "nodes").glob("*/*/log"))
    wait_until(lambda: b"ended" in log.read_bytes(), "the program has ended without a service")
    service.start()
    assert service.wait("away")["TrainingJobStatus"] == "Completed"
    assert service.lines("away") == ["started", "ended"]


def test_a_killed_agent_fails_the_job_and_names_the_node(service):
    script = "echo started; while :; do sleep 0.1; done"
    service.create("orphan", script, instances=2)
    wait_until(lambda: service.lines("orphan").count("started") == 2, "both ranks have started")
    os.kill(agent_pid(service, "algo-2"), signal.SIGKILL)
    job = service.wait("orphan")
    assert job["TrainingJobStatus"] == "Failed" and "algo-2" in job["FailureReason"], job
    assert service.lines("orphan", "algo-2") == ["started"]
    wait_until(lambda: service.survivors() == [], "nothing of the job runs", 10)
    wait_until(lambda: not list((service.data / "nodes").iterdir()), "no node directory is left", 10)


def test_everything_killed_at_once_ends_in_one_terminal_state(service):
    service.create("blackout", "echo started; while :; do sleep 0.1; done")
    service.wait_for_log("blackout", "started")
    pid = agent_pid(service, "algo-1")
    service.kill()
    os.kill(pid, signal.SIGKILL)
    service.start()
    job = service.wait("blackout")
    assert job["TrainingJobStatus"] == "Failed" and "algo-1" in job["FailureReason"]
    assert service.survivors() == []
