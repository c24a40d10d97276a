"""No call without a key, no secret within reach of a job."""

import contextlib
import datetime
import http.client
import json
import pathlib
from unittest import mock

import botocore.auth
import botocore.exceptions
import pytest
from conftest import running_service, wait_until


def code_of(call):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call()
    return caught.value.response["Error"]["Code"]


def test_a_wrong_secret_and_an_unknown_key_are_refused(shared_service):
    access, _ = shared_service.keys
    wrong = shared_service.client("sagemaker", aws_secret_access_key="x" * 40)
    assert code_of(wrong.list_training_jobs) == "InvalidSignatureException"
    unknown = shared_service.client("sagemaker", aws_access_key_id="AKIAUNKNOWNUNKNOWN00")
    assert code_of(unknown.list_training_jobs) == "UnrecognizedClientException"
    assert code_of(shared_service.client("sts", aws_access_key_id="AKIAUNKNOWNUNKNOWN00").get_caller_identity) == "InvalidClientTokenId"
    assert code_of(shared_service.client("sts", aws_secret_access_key="x" * 40).get_caller_identity) == "SignatureDoesNotMatch"
    assert access


def test_no_authorization_is_refused(shared_service):
    host = shared_service.endpoint.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=10)
    connection.request("POST", "/", "{}", {"X-Amz-Target": "SageMaker.ListTrainingJobs", "Content-Type": "application/x-amz-json-1.1"})
    reply = connection.getresponse()
    assert reply.status in (400, 403)
    assert json.loads(reply.read())["__type"] == "MissingAuthenticationTokenException"


def test_a_skewed_clock_is_refused(shared_service):
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=20)
    with mock.patch.object(botocore.auth, "get_current_datetime", return_value=later.replace(tzinfo=None)):
        code = code_of(shared_service.client("sagemaker").list_training_jobs)
    assert code in ("InvalidSignatureException", "RequestExpired")


def test_a_tampered_body_creates_nothing(shared_service):
    client = shared_service.client("sagemaker")

    def tamper(request, **_):
        request.body = request.body.replace(b"honest", b"forged")

    client.meta.events.register("before-send.sagemaker.CreateTrainingJob", tamper)
    assert code_of(lambda: client.create_training_job(**shared_service.request("honest", "true"))) == "InvalidSignatureException"
    names = [j["TrainingJobName"] for j in shared_service.client("sagemaker").list_training_jobs()["TrainingJobSummaries"]]
    assert "forged" not in names and "honest" not in names


def test_a_job_cannot_read_what_is_the_services(shared_service):
    secret = shared_service.keys[1]
    script = f"""
    for f in {shared_service.data}/credentials {shared_service.data}/state.db {shared_service.env['AWS_SHARED_CREDENTIALS_FILE']} \
             {shared_service.data}/nodes/*/config.json; do
        if cat "$f" 2>/dev/null | grep -q .; then echo "READ $f"; fi
    done
    grep -rs '{secret[:20]}' {shared_service.home} /proc/[0-9]*/environ && echo LEAK
    echo pids: $(ls -d /proc/[0-9]* | wc -l)
    grep NoNewPrivs /proc/self/status; grep CapEff /proc/self/status
    for as in "" "unshare -Urm" "unshare -UrmC"; do $as mount -t tmpfs none /mnt 2>/dev/null && echo MOUNTED $as; done
    echo done
    """
    shared_service.create("spy", script)
    assert shared_service.wait("spy")["TrainingJobStatus"] == "Completed", shared_service.describe("spy")
    lines = shared_service.lines("spy")
    assert "done" in lines and not [line for line in lines if line.startswith(("READ", "LEAK", "MOUNTED"))], lines
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    assert int(facts["pids"]) < 15 and facts["NoNewPrivs"].strip() == "1"
    docker_default = 0xa80425fb
    assert int(facts["CapEff"].strip(), 16) & ~docker_default == 0


def test_the_keys_are_in_no_command_line_environment_log_or_answer(shared_service):
    access, secret = shared_service.keys
    shared_service.create("quiet", "echo up; sleep 1000")
    shared_service.wait_for_log("quiet", "up")
    configs = [json.loads(path.read_text()) for path in (shared_service.data / "nodes").glob("*/config.json")]
    secrets = [secret, *(config["secret_key"] for config in configs)]
    assert len(secrets) == 2
    own = [shared_service.process.pid, *(int(pid) for pid, _ in shared_service.survivors())]
    own += [int(path.read_text().split()[0]) for path in (shared_service.data / "nodes").glob("*/work/keeper.pid")]
    assert len(own) == 3
    seen = [json.dumps(shared_service.describe("quiet"), default=str), shared_service.log()]
    seen += shared_service.gruca("job", "describe", "quiet", "--json").stdout, shared_service.gruca("job", "logs", "quiet").stdout
    for pid in own:
        proc = pathlib.Path(f"/proc/{pid}")
        seen += [(proc / name).read_text(errors="replace") for name in ("cmdline", "environ", "comm")]
        assert "Max core file size        0 " in (proc / "limits").read_text()
    seen += [path.read_text(errors="replace") for path in shared_service.data.glob("nodes/*/**/*log*") if path.is_file()]
    seen += [path.read_text(errors="replace") for path in shared_service.data.glob("logs/**/*") if path.is_file()]
    assert not [text for text in seen for secret in secrets if secret in text]
    shared_service.client("sagemaker").stop_training_job(TrainingJobName="quiet")


def processes():
    """Every one of the machine: its number, its command line, its environment."""
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                yield entry, (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes().split(b"\0")


def test_the_keys_of_a_job_are_in_its_own_environment_alone(shared_service):
    shared_service.create("keyed", "echo up; sleep 1000", instances=2)
    for host in ("algo-1", "algo-2"):
        wait_until(lambda host=host: shared_service.lines("keyed", host) == ["up"], f"{host} is up")
    programs = [(proc, environ) for proc, _, environ in processes() if b"TRAINING_JOB_NAME=keyed" in environ]
    assert len(programs) >= 4  # The shells and their sleeps.
    values = dict(variable.split(b"=", 1) for variable in programs[0][1] if b"=" in variable)
    secrets = [values[b"AWS_SECRET_ACCESS_KEY"], values[b"AWS_SESSION_TOKEN"]]
    secrets += {path.read_bytes().strip() for path in shared_service.data.glob("nodes/*/work/ml/gruca/remote-shell")}
    assert len(secrets) == 3 and all(len(secret) >= 40 for secret in secrets)
    for proc, command, environ in processes():
        assert not [secret for secret in secrets if secret in command], command
        if b"TRAINING_JOB_NAME=keyed" in environ:
            assert (proc / "environ").stat().st_mode & 0o077 == 0
        else:
            assert not [secret for secret in secrets if secret in b"\0".join(environ)], command
    told = [json.dumps(shared_service.describe("keyed"), default=str), shared_service.log(), *shared_service.lines("keyed")]
    told += [shared_service.gruca("job", "describe", "keyed", *flags).stdout for flags in ((), ("--json",))]
    assert not [text for text in told for secret in secrets if secret.decode() in text]
    shared_service.client("sagemaker").stop_training_job(TrainingJobName="keyed")
    shared_service.wait("keyed")
    holding = {path.name for path in shared_service.data.rglob("*") if path.is_file() and not path.is_symlink()
               for secret in secrets if secret in path.read_bytes()}
    assert holding <= {"state.db", "state.db-wal"}, holding  # Not in what the job has left behind.


def test_what_holds_keys_is_for_its_owner_alone(shared_service):
    shared_service.create("modes", "echo up; sleep 1000")
    shared_service.wait_for_log("modes", "up")
    files = [shared_service.data / "credentials", *shared_service.data.glob("state.db*"),
             *shared_service.data.glob("nodes/*/config.json"), pathlib.Path(shared_service.env["AWS_SHARED_CREDENTIALS_FILE"])]
    assert len(files) >= 4
    for file in files:
        readable = [path for path in (file, *file.parents) if not path.stat().st_mode & 0o077]
        assert readable, f"others may read {file}"
    shared_service.client("sagemaker").stop_training_job(TrainingJobName="modes")


def test_a_job_has_a_tmp_of_its_own_that_goes_with_it(shared_service):
    before = pathlib.Path("/tmp/gruca-test-of-the-machine")
    before.write_text("the machine's")
    try:
        shared_service.create("scratch", "ls -A /tmp /var/tmp; echo mine > /tmp/mine; echo mine > /var/tmp/mine; cat /tmp/mine")
        assert shared_service.wait("scratch")["TrainingJobStatus"] == "Completed", shared_service.describe("scratch")
    finally:
        before.unlink()
    assert [line for line in shared_service.lines("scratch") if line.strip()] == ["/tmp:", "/var/tmp:", "mine"]
    assert not pathlib.Path("/tmp/mine").exists() and not pathlib.Path("/var/tmp/mine").exists()


def test_a_job_that_dumps_core_leaves_no_core_file(shared_service):
    shared_service.create("core", "cd /opt/ml/model; ulimit -Sc; kill -SEGV $$")
    job = shared_service.wait("core")
    assert job["TrainingJobStatus"] == "Failed" and "Segmentation fault" in job["FailureReason"]
    assert shared_service.lines("core") == ["0"]


def test_a_failure_file_that_links_to_a_secret_reveals_nothing(shared_service):
    secret = shared_service.keys[1]
    target = shared_service.data / "credentials"
    shared_service.create("link", f"ln -s {target} /opt/ml/output/failure; ln -s /etc/shadow /opt/ml/model/shadow; exit 1")
    job = shared_service.wait("link")
    assert job["TrainingJobStatus"] == "Failed" and secret not in json.dumps(job, default=str)


def test_a_job_cannot_read_a_credentials_file_that_is_a_link(tmp_path):
    (tmp_path / "aws").mkdir()
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles/credentials").write_text("[default]\naws_access_key_id = A\n")
    (tmp_path / "aws/credentials").symlink_to(tmp_path / "dotfiles/credentials")
    with running_service(tmp_path) as service:
        secret = service.keys[1]
        assert secret in (tmp_path / "dotfiles/credentials").read_text()
        service.create("spy", f"cat {tmp_path}/dotfiles/credentials {tmp_path}/aws/credentials; echo done")
        assert service.wait("spy")["TrainingJobStatus"] == "Completed", service.describe("spy")
        assert "done" in service.lines("spy") and secret not in "\n".join(service.lines("spy"))


def test_a_job_cannot_read_a_credentials_file_that_is_replaced_while_it_runs(tmp_path):
    with running_service(tmp_path) as service:
        file = tmp_path / "aws/credentials"
        service.create("spy", f"echo up; while ! test -e /opt/ml/model/go; do sleep 0.05; done; cat {file}; echo done")
        service.wait_for_log("spy", "up")
        (tmp_path / "aws/new").write_text("a new secret")
        (tmp_path / "aws/new").rename(file)
        next(service.data.glob("nodes/*/work/ml/model")).joinpath("go").touch()
        assert service.wait("spy")["TrainingJobStatus"] == "Completed", service.describe("spy")
        assert "done" in service.lines("spy") and "a new secret" not in "\n".join(service.lines("spy"))


@pytest.mark.parametrize("path", ["/checkpoints", "/checkpoints/"])
def test_a_local_path_that_could_not_be_mounted_is_refused_at_once(shared_service, path):
    request = shared_service.request("shallow", "true", CheckpointConfig={"S3Uri": "s3://b/c", "LocalPath": path})
    assert code_of(lambda: shared_service.client("sagemaker").create_training_job(**request)) == "ValidationException"


@pytest.mark.parametrize("member, value", [
    ("EnableInterContainerTrafficEncryption", True), ("EnableManagedSpotTraining", True),
    ("VpcConfig", {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]})])
def test_what_gruca_cannot_keep_is_refused_by_name(shared_service, member, value):
    request = shared_service.request("refused", "true", **{member: value})
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        shared_service.client("sagemaker").create_training_job(**request)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert member.lower() in caught.value.response["Error"]["Message"].lower()


def test_other_profiles_stay_as_they_are(tmp_path):
    (tmp_path / "aws").mkdir()
    theirs = "[default]\naws_access_key_id = A\n# a comment\naws_secret_access_key=B"
    (tmp_path / "aws/credentials").write_text(theirs)
    with running_service(tmp_path) as service:
        text = (tmp_path / "aws/credentials").read_text()
        assert text.startswith(theirs) and "[gruca]" in text
        assert (service.data / "credentials").stat().st_mode & 0o777 == 0o600


def test_a_foreign_gruca_profile_is_never_replaced(tmp_path):
    (tmp_path / "aws").mkdir()
    theirs = "[gruca]\naws_access_key_id = SOMEBODY\naws_secret_access_key = ELSES\n"
    (tmp_path / "aws/credentials").write_text(theirs)
    with running_service(tmp_path) as service:
        assert (tmp_path / "aws/credentials").read_text() == theirs
        assert "gruca" in service.log()
