"""Real processes on loopback: a service with a data directory, AWS files and a port of its own, and real
clients. Run through in_lo.sh, so that nothing can leave the machine."""

import configparser
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import boto3
import botocore.config
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
APPS = pathlib.Path(os.environ.get("GRUCA_APPS", ROOT / "build/release/apps"))
ROLE = "arn:aws:iam::000000000000:role/gruca"
TERMINAL = {"Completed", "Failed", "Stopped"}


def pytest_configure(config):
    """Not below /tmp, where jobs do not see what a test puts there: theirs is their own."""
    if not config.option.basetemp:
        config.option.basetemp = str(APPS.parent / f"e2e-{os.getpid()}")


def pytest_unconfigure(config):
    shutil.rmtree(config.option.basetemp, ignore_errors=True)


def wait_until(condition, what, seconds=60):
    """Polls, because clients of the API poll; fails with `what`, a text or what makes one, after a generous limit."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"timed out after {seconds} s waiting until {what() if callable(what) else what}")


class Service:
    def __init__(self, home, *flags):
        self.home = pathlib.Path(home)
        self.data = self.home / "data"
        self.flags = flags
        self.process = None
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "AWS_SHARED_CREDENTIALS_FILE": str(self.home / "aws/credentials"),
            "AWS_CONFIG_FILE": str(self.home / "aws/config"),
            "AWS_PROFILE": "gruca",
            "AWS_PAGER": "",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "1",
            "GRUCA_HOME": str(self.data),
        }
        (self.home / "aws").mkdir(parents=True, exist_ok=True)
        self.port = 0

    def spawn(self):
        with open(self.home / "service.log", "ab") as log:
            return subprocess.Popen(
                [APPS / "gruca-service", "--data-dir", self.data, "--port", str(self.port), *self.flags],
                env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start(self):
        self.process = self.spawn()
        facts = wait_until(self._facts, "the service answers", 20)
        self.endpoint, self.region = facts["endpoint"], facts["region"]
        self.port = int(self.endpoint.rsplit(":", 1)[1])
        return self

    def _facts(self):
        assert self.process.poll() is None, self.log()
        try:
            facts = json.loads((self.data / "service.json").read_text())
        except (OSError, ValueError):
            return None
        return facts if facts["pid"] == self.process.pid else None

    def log(self):
        return (self.home / "service.log").read_text(errors="replace")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)

    @property
    def keys(self):
        ini = configparser.ConfigParser()
        ini.read(self.data / "credentials")
        return ini["gruca"]["aws_access_key_id"], ini["gruca"]["aws_secret_access_key"]

    def client(self, name, **kwargs):
        access, secret = self.keys
        options = dict(
            endpoint_url=self.endpoint, region_name=self.region, aws_access_key_id=access,
            aws_secret_access_key=secret,
            config=botocore.config.Config(retries={"total_max_attempts": 1}, read_timeout=30))
        options.update(kwargs)
        return boto3.session.Session().client(name, **options)

    def run(self, *argv, check=True, **kwargs):
        done = subprocess.run([str(a) for a in argv], env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=180, **kwargs)
        if check:
            assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}\n{self.log()[-4000:]}"
        return done

    def gruca(self, *argv, **kwargs):
        return self.run(APPS / "gruca", *argv, **kwargs)

    # What tests say of jobs.

    def request(self, name, script=None, instances=1, **members):
        body = {
            "TrainingJobName": name,
            "AlgorithmSpecification": {"TrainingImage": "gruca/host", "TrainingInputMode": "File"},
            "RoleArn": ROLE,
            "OutputDataConfig": {"S3OutputPath": "s3://out/jobs"},
            "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": instances, "VolumeSizeInGB": 1},
            "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        }
        if script is not None and (len(script) > 256 or "\n" in script):  # More than an argument may hold.
            path = self.home / f"{name}.sh"
            path.write_text(script)
            body["AlgorithmSpecification"]["ContainerEntrypoint"] = ["/bin/sh", str(path)]
        elif script is not None:
            body["AlgorithmSpecification"]["ContainerEntrypoint"] = ["/bin/sh", "-c"]
            body["AlgorithmSpecification"]["ContainerArguments"] = [script]
        body.update(members)
        return body

    def create(self, name, script=None, instances=1, **members):
        return self.client("sagemaker").create_training_job(**self.request(name, script, instances, **members))

    def describe(self, name):
        return self.client("sagemaker").describe_training_job(TrainingJobName=name)

    def wait(self, name, seconds=90):
        def ended():
            job = self.describe(name)
            return job if job["TrainingJobStatus"] in TERMINAL else None
        return wait_until(ended, f"{name} has ended", seconds)

    def wait_for_log(self, name, text, seconds=60):
        return wait_until(lambda: text in "\n".join(self.lines(name)), f"{name} has logged {text!r}", seconds)

    def lines(self, name, host=None):
        logs, lines, token = self.client("logs"), [], None
        group = "/aws/sagemaker/TrainingJobs"
        prefix = f"{name}/{host}-" if host else f"{name}/"
        with contextlib.suppress(logs.exceptions.ResourceNotFoundException):
            streams = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=prefix)["logStreams"]
            for stream in streams:
                token = None
                while True:
                    more = {"nextToken": token} if token else {}
                    page = logs.get_log_events(logGroupName=group, logStreamName=stream["logStreamName"],
                                               startFromHead=True, **more)
                    lines += [event["message"] for event in page["events"]]
                    if page["nextForwardToken"] == token:
                        break
                    token = page["nextForwardToken"]
        return lines

    def put(self, text, uri, tmp_name="object"):
        path = self.home / tmp_name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.gruca("store", "cp", path, uri)

    def fetch(self, uri):
        path = self.home / "fetched"
        path.unlink(missing_ok=True)
        self.gruca("store", "cp", uri, path)
        return path.read_bytes()

    def keys_under(self, uri):
        return self.gruca("store", "ls", "-r", uri).stdout

    def survivors(self):
        """Processes of this service's nodes that are alive."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and int(entry.name) != os.getpid():
                    command = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
                    if str(self.data / "nodes") in command:
                        found.append((entry.name, command))
        return found


@contextlib.contextmanager
def running_service(home, *flags, stop_grace=2):
    """With None for the grace that a service has by default."""
    grace = () if stop_grace is None else ("--stop-grace", str(stop_grace))
    service = Service(home, *grace, *flags).start()
    try:
        yield service
    finally:
        end_jobs(service)
        service.stop()
        if service.process.poll() is None:
            service.kill()


def end_jobs(service):
    if service.process.poll() is not None:
        return
    client = service.client("sagemaker")
    names = [job["TrainingJobName"] for job in client.list_training_jobs(MaxResults=100)["TrainingJobSummaries"]
             if job["TrainingJobStatus"] not in TERMINAL]
    for name in names:
        with contextlib.suppress(Exception):
            client.stop_training_job(TrainingJobName=name)
    for name in names:
        service.wait(name, 60)


@pytest.fixture
def service(tmp_path):
    with running_service(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def shared_service(tmp_path_factory):
    with running_service(tmp_path_factory.mktemp("service")) as running:
        yield running
