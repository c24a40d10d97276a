"""Programs that do not want to end are ended: nothing of a job runs once it is over."""

import os
import pathlib
import socket
import subprocess

import hostile
import pytest
from conftest import APPS, TERMINAL, running_service, wait_until
from stuck_fs import StuckFs

HOSTILE = pathlib.Path(hostile.__file__)


@pytest.fixture(scope="module")
def strict_service(tmp_path_factory):
    with running_service(tmp_path_factory.mktemp("stops"), "--stop-grace", "1", "--slots", "8") as service:
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
            if f"/{job}-algo-" in (entry / "cgroup").read_text().replace("gruca-", ""):
                found.append((entry / "stat").read_text()[:40])
        except OSError:
            pass
    return found


def stop(service, name):
    service.client("sagemaker").stop_training_job(TrainingJobName=name)


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
