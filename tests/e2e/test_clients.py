"""Real clients create, follow, stop and list jobs; every operation's effect is seen on a process, a file or a byte."""

import io
import json
import pathlib
import tarfile

import botocore.exceptions
import pytest

from conftest import ROOT, wait_until

CLI = {"v1": str(ROOT / ".venv/bin/aws"), "v2": "/usr/bin/aws"}
GROUP = "/aws/sagemaker/TrainingJobs"


def members(service, uri):
    with tarfile.open(fileobj=io.BytesIO(service.fetch(uri)), mode="r:gz") as tar:
        return {m.name.removeprefix("./"): (tar.extractfile(m).read() if m.isfile() else m) for m in tar
                if m.name not in (".", "./")}


class Aws:
    """The AWS CLI. Version 1 finds the endpoint in the profile; Debian's version 2 has to be told."""

    def __init__(self, service, version):
        self.service, self.version = service, version
        assert pathlib.Path(CLI[version]).exists(), f"no AWS CLI at {CLI[version]}: ./dev setup installs it"

    def __call__(self, *words, check=True):
        flags = ["--endpoint-url", self.service.endpoint] if self.version == "v2" else []
        done = self.service.run(CLI[self.version], *words, *flags, "--output", "json", check=check)
        if not check:
            return done
        return json.loads(done.stdout) if done.stdout.strip() else None


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_aws_cli_creates_follows_and_lists_a_job(shared_service, tmp_path, version):
    aws, name = Aws(shared_service, version), f"cli-{version}"
    request = shared_service.request(name, 'echo "hello from $(hostname)"; echo weights > /opt/ml/model/w',
                                     Tags=[{"Key": "team", "Value": "a"}])
    (tmp_path / "job.json").write_text(json.dumps(request))
    arn = aws("sagemaker", "create-training-job", "--cli-input-json", f"file://{tmp_path}/job.json")["TrainingJobArn"]
    assert arn.endswith(f":training-job/{name}")
    # The first poll of the waiter is at once, the next after two minutes: wait first, then ask it.
    shared_service.wait(name)
    aws("sagemaker", "wait", "training-job-completed-or-stopped", "--training-job-name", name)
    job = aws("sagemaker", "describe-training-job", "--training-job-name", name)
    assert job["TrainingJobStatus"] == "Completed" and job["BillableTimeInSeconds"] >= 1
    assert members(shared_service, job["ModelArtifacts"]["S3ModelArtifacts"]) == {"w": b"weights\n"}
    streams = aws("logs", "describe-log-streams", "--log-group-name", GROUP, "--log-stream-name-prefix", f"{name}/")
    stream, = streams["logStreams"]
    assert stream["logStreamName"].startswith(f"{name}/algo-1-")
    events = aws("logs", "get-log-events", "--log-group-name", GROUP, "--log-stream-name", stream["logStreamName"],
                 "--start-from-head")["events"]
    assert "hello from algo-1" in [event["message"] for event in events]
    listed = aws("sagemaker", "list-training-jobs", "--name-contains", name)["TrainingJobSummaries"]
    assert [job["TrainingJobName"] for job in listed] == [name]
    aws("sagemaker", "add-tags", "--resource-arn", arn, "--tags", "Key=cost,Value=7")
    aws("sagemaker", "delete-tags", "--resource-arn", arn, "--tag-keys", "team")
    assert aws("sagemaker", "list-tags", "--resource-arn", arn)["Tags"] == [{"Key": "cost", "Value": "7"}]
    assert aws("sts", "get-caller-identity")["Account"] == "000000000000"


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_aws_cli_stops_a_job_whose_program_then_saves_and_ends(shared_service, tmp_path, version):
    aws, name = Aws(shared_service, version), f"stop-{version}"
    script = "trap 'echo saved > /opt/ml/model/w; exit 0' TERM; echo started; while :; do sleep 0.1; done"
    (tmp_path / "job.json").write_text(json.dumps(shared_service.request(name, script)))
    aws("sagemaker", "create-training-job", "--cli-input-json", f"file://{tmp_path}/job.json")
    shared_service.wait_for_log(name, "started")
    aws("sagemaker", "stop-training-job", "--training-job-name", name)
    job = shared_service.wait(name)
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert members(shared_service, job["ModelArtifacts"]["S3ModelArtifacts"]) == {"w": b"saved\n"}
    again = aws("sagemaker", "stop-training-job", "--training-job-name", name, check=False)
    assert again.returncode in (254, 255)
    assert "The request was rejected because the training job is in status Stopped" in again.stderr


def test_boto3_sees_every_status_with_its_message_and_time(shared_service):
    shared_service.create("statuses", "echo line; echo m > /opt/ml/model/m")
    job = shared_service.wait("statuses")
    transitions = job["SecondaryStatusTransitions"]
    assert [t["Status"] for t in transitions][0] == "Starting"
    assert [t["Status"] for t in transitions][-2:] == ["Uploading", "Completed"]
    assert "Training" in [t["Status"] for t in transitions]
    assert all(t["StatusMessage"] for t in transitions)
    messages = [t["StatusMessage"] for t in transitions]
    assert all(a != b for a, b in zip(messages, messages[1:]))
    for before, after in zip(transitions, transitions[1:]):
        assert before["EndTime"] == after["StartTime"]
    assert job["CreationTime"] <= job["TrainingStartTime"] <= job["TrainingEndTime"]
    assert job["TrainingTimeInSeconds"] >= 1 and job["LastModifiedTime"]
    assert job["EnableManagedSpotTraining"] is False and job["OutputDataConfig"]["KmsKeyId"] == ""
    assert "InstanceGroups" not in job["ResourceConfig"]


def test_filter_log_events_and_pages_give_every_line_once(shared_service):
    shared_service.create("lines", "i=0; while [ $i -lt 2500 ]; do echo line $i; i=$((i+1)); done", instances=2)
    shared_service.wait("lines")
    logs = shared_service.client("logs")
    pages = logs.get_paginator("filter_log_events").paginate(
        logGroupName=GROUP, logStreamNamePrefix="lines/", PaginationConfig={"PageSize": 1000})
    events = [event for page in pages for event in page["events"]]
    assert len({event["eventId"] for event in events}) == len(events) == 5000
    for host in ("algo-1", "algo-2"):
        assert shared_service.lines("lines", host) == [f"line {i}" for i in range(2500)]


def test_a_name_is_used_once(shared_service):
    shared_service.create("twice", "true")
    client = shared_service.client("sagemaker")
    with pytest.raises(client.exceptions.ResourceInUse):
        client.create_training_job(**shared_service.request("twice", "true"))
    shared_service.wait("twice")
    with pytest.raises(client.exceptions.ResourceInUse):
        client.create_training_job(**shared_service.request("twice", "true"))


def test_an_unknown_job_is_a_validation_exception_as_sdks_expect(shared_service):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        shared_service.describe("nobody")
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert "Requested resource not found." in caught.value.response["Error"]["Message"]
    with pytest.raises(botocore.exceptions.ClientError):
        shared_service.client("sagemaker").stop_training_job(TrainingJobName="nobody")


def test_an_operation_that_is_not_there_is_an_aws_error(shared_service):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        shared_service.client("sagemaker").list_models()
    error = caught.value.response
    assert error["Error"]["Code"] == "UnknownOperationException"
    assert error["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_all_violations_come_in_one_message(shared_service):
    request = shared_service.request("a_b", "true")
    request["StoppingCondition"] = {"MaxRuntimeInSeconds": 600}
    request["ResourceConfig"]["InstanceType"] = "ml.nothing"
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        shared_service.client("sagemaker").create_training_job(**request)
    message = caught.value.response["Error"]["Message"]
    assert message.startswith("2 validation errors detected: ")
    assert "'trainingJobName'" in message and "'resourceConfig.instanceType'" in message


def test_lists_page_sort_and_filter(service):
    for i in range(7):
        service.create(f"list-{i}", "true" if i else "exit 1")
    for i in range(7):
        service.wait(f"list-{i}")
    client = service.client("sagemaker")
    pages = client.get_paginator("list_training_jobs").paginate(
        SortBy="Name", SortOrder="Descending", PaginationConfig={"PageSize": 3})
    names = [job["TrainingJobName"] for page in pages for job in page["TrainingJobSummaries"]]
    assert names == [f"list-{i}" for i in range(6, -1, -1)]
    failed = client.list_training_jobs(StatusEquals="Failed")["TrainingJobSummaries"]
    assert [job["TrainingJobName"] for job in failed] == ["list-0"]


def test_four_slots_run_and_the_rest_wait_together(service):
    hold = "while [ ! -e /opt/ml/input/data/never ]; do sleep 0.05; done"
    service.create("first", hold, instances=3)
    wait_until(lambda: service.describe("first")["SecondaryStatus"] == "Training", "first trains")
    service.create("second", "true", instances=2)
    waiting = service.describe("second")
    assert waiting["SecondaryStatus"] in ("Starting", "Pending") and "TrainingStartTime" not in waiting
    service.client("sagemaker").stop_training_job(TrainingJobName="first")
    assert service.wait("first")["TrainingJobStatus"] == "Stopped"
    assert service.wait("second")["TrainingJobStatus"] == "Completed"
    client = service.client("sagemaker")
    with pytest.raises(client.exceptions.ResourceLimitExceeded):
        client.create_training_job(**service.request("large", "true", instances=5))
