"""The CLI as a person uses it."""

import json
import os
import pathlib

from conftest import APPS, running_service


def test_a_service_is_started_found_and_stopped(tmp_path):
    import subprocess
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GRUCA_HOME": str(tmp_path / "data"),
           "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "aws/credentials"), "AWS_CONFIG_FILE": str(tmp_path / "aws/config")}

    def gruca(*words, expect=0):
        done = subprocess.run([str(APPS / "gruca"), *words], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == expect or expect is None, (words, done.stdout, done.stderr)
        return done

    gone = gruca("job", "list", expect=None)
    assert gone.returncode != 0 and "gruca service start" in gone.stderr
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data/service.log").touch()
    os.truncate(tmp_path / "data/service.log", 16 << 20)  # As long as it may get.
    started = gruca("service", "start", "--port", "0")
    assert (tmp_path / "data/service.log").stat().st_size < 1 << 20 and (tmp_path / "data/service.log.1").stat().st_size >= 16 << 20
    assert "http://127.0.0.1:" in started.stdout
    assert json.loads(gruca("service", "status", "--json").stdout)["endpoint"].startswith("http://127.0.0.1:")
    gruca("job", "create", "--name", "cli", "--image", "gruca/host", "--output", "s3://out", "--", "sh", "-c",
          "echo started; while :; do sleep 0.1; done")
    refused = gruca("service", "stop", expect=None)
    assert refused.returncode != 0 and "--stop-jobs" in refused.stderr
    gruca("service", "stop", "--stop-jobs")
    assert gruca("service", "status", expect=None).returncode != 0


def test_jobs_are_created_followed_described_and_listed(service):
    done = service.gruca("job", "create", "--name", "hello", "--image", "gruca/host", "--output", "s3://out", "--follow",
                         "--", "sh", "-c", "echo hi there; echo m > /opt/ml/model/m")
    assert "hi there" in done.stdout and "Completed" in done.stdout and "s3://out/hello/output/model.tar.gz" in done.stdout
    assert json.loads(service.gruca("job", "describe", "hello", "--json").stdout)["TrainingJobStatus"] == "Completed"
    assert "hello" in service.gruca("job", "list").stdout
    assert service.gruca("job", "logs", "hello").stdout.count("hi there") == 1
    failed = service.gruca("job", "create", "--name", "bad", "--image", "gruca/host", "--output", "s3://out", "--follow",
                           "--", "sh", "-c", "exit 7", check=False)
    assert failed.returncode != 0 and "exit code: 7" in failed.stdout + failed.stderr
    assert service.gruca("job", "wait", "bad", check=False).returncode != 0


def test_a_failed_job_is_explained_by_its_timeline_its_nodes_and_a_hint(service):
    service.gruca("job", "create", "--name", "sad", "--image", "gruca/host", "--output", "s3://out", "--instances", "2", "--follow",
                  "--", "sh", "-c", "[ $(hostname) = algo-1 ] && exec sleep 30; echo the disk is on fire; exit 3", check=False)
    told = service.gruca("job", "describe", "sad").stdout
    assert "the disk is on fire" in told and "exit code: 3, on algo-2" in told
    assert "Hint: " in told and "docs/guide/when-a-job-fails.md" in told
    stages = [line.split()[1] for line in told.split("Timeline:\n")[1].splitlines() if line[2:3].isdigit()]
    # A stage that was over before anybody heard of it is not there.
    assert stages[:2] == ["queued", "starting"] and stages[-1] == "Failed:", told
    nodes = told.split("Nodes:\n")[1]
    assert nodes.index("algo-1") < nodes.index("algo-2") and "exit code 3" in nodes


def test_the_doctor_finds_this_machine_usable_and_leaves_nothing_behind(service, tmp_path):
    said = json.loads(service.gruca("doctor", "--json").stdout)
    assert said["usable"] and {one["subject"] for one in said["findings"]} >= {"sandbox", "cgroups", "network", "way out", "resolver", "disk", "memory", "processor"}
    assert "Jobs can run here" in service.gruca("doctor").stdout
    network = next(one for one in said["findings"] if one["subject"] == "network")
    bridge = service.log().rsplit("on the bridge ", 1)[1].split()[0]
    assert network["verdict"] == "ok" and bridge in network["found"], network
    assert list(pathlib.Path("/sys/fs/cgroup").glob("**/gruca/probe-*")) == []


def test_the_store_takes_lists_returns_and_removes(service, tmp_path):
    (tmp_path / "tree/sub").mkdir(parents=True)
    (tmp_path / "tree/a").write_text("A")
    (tmp_path / "tree/sub/b").write_text("B")
    service.gruca("store", "cp", "-r", tmp_path / "tree", "s3://box/tree")
    assert {"tree/a", "tree/sub/b"} <= set(service.gruca("store", "ls", "-r", "s3://box/").stdout.replace("s3://box/", "").split())
    service.gruca("store", "cp", "-r", "s3://box/tree", tmp_path / "back")
    assert (tmp_path / "back/sub/b").read_text() == "B"
    service.gruca("store", "rm", "s3://box/tree/a")
    assert service.gruca("store", "cp", "s3://box/tree/a", tmp_path / "gone", check=False).returncode != 0
