"""Programs of other people that need PyTorch or SageMaker's training toolkit, unmodified, under the running service;
what is asserted is what boto3 says. Run by tests/oracle/run.sh, with the fixtures of tests/e2e."""

import io
import json
import pathlib
import sys
import tarfile

HERE = pathlib.Path(__file__).parent
BIN = pathlib.Path(sys.executable).parent
PATIENCE = 400  # Importing PyTorch takes its time, eight times over.

TORCHRUN = (f"exec {BIN}/torchrun --nnodes 2 --nproc-per-node 1 --node-rank $((${{SM_CURRENT_HOST#algo-}} - 1)) "
            "--master-addr algo-1 --master-port 29500 ")
C10D = f"exec {BIN}/torchrun --nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint algo-1:29500 --rdzv-id 1 "


def completed(service, name):
    job = service.wait(name, PATIENCE)
    assert job["TrainingJobStatus"] == "Completed", (job.get("FailureReason"), service.lines(name))
    return job


def files_of(service, name):
    with tarfile.open(fileobj=io.BytesIO(service.fetch(f"s3://out/jobs/{name}/output/model.tar.gz"))) as tar:
        return {m.name.removeprefix("./"): tar.extractfile(m).read() for m in tar if m.isfile()}


def test_a_two_node_script_finds_its_peer_over_gloo(shared_service):
    shared_service.create("gloo", f"exec {BIN}/python {HERE}/ddp.py", instances=2, HyperParameters={"steps": "5"})
    completed(shared_service, "gloo")
    lines = shared_service.lines("gloo")
    for rank in (0, 1):
        assert f"rank {rank} of 2 joined algo-1:7777" in lines and f"rank {rank} done after 5 steps" in lines
    assert set(files_of(shared_service, "gloo")) == {"model.pt"}


def test_two_torchrun_jobs_on_one_port_at_once(shared_service, tmp_path_factory):
    go = tmp_path_factory.mktemp("signal") / "go"  # Beside what is hidden, a job sees no new file.
    for name, launcher in (("run-a", TORCHRUN), ("run-b", C10D)):
        shared_service.create(name, f"{launcher} {HERE}/ddp.py --wait-for {go}", instances=2)
    for name in ("run-a", "run-b"):
        for rank in (0, 1):
            shared_service.wait_for_log(name, f"rank {rank} of 2 joined", PATIENCE)
    go.touch()
    for name in ("run-a", "run-b"):
        completed(shared_service, name)
        assert set(files_of(shared_service, name)) == {"model.pt"}


def test_a_worker_that_fails_under_torchrun_fails_the_job_with_its_words(shared_service):
    shared_service.create("run-fails", f"{TORCHRUN} {HERE}/ddp.py", instances=2, Environment={"FAIL_ON": "1"})
    job = shared_service.wait("run-fails", PATIENCE)
    assert job["TrainingJobStatus"] == "Failed" and "exit code: 1" in job["FailureReason"], job["FailureReason"]
    assert "asked to fail" in "\n".join(shared_service.lines("run-fails"))


def toolkit_job(service, job, **hyperparameters):
    """As SageMaker's SDK asks for script mode: the code as an archive, every value JSON."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        tar.add(HERE / "user_script.py", arcname="user_script.py")
    service.put(archive.getvalue(), f"s3://code/{job}/sourcedir.tar.gz")
    service.put("five rows", f"s3://in/{job}/part")
    request = service.request(job, instances=2, InputDataConfig=[
        {"ChannelName": channel, "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri}}}
        for channel, uri in (("code", f"s3://code/{job}/"), ("train", f"s3://in/{job}/"))])
    values = {"sagemaker_program": "user_script.py", "sagemaker_submit_directory": "/opt/ml/input/data/code/sourcedir.tar.gz",
              **hyperparameters}
    request["HyperParameters"] = {key: json.dumps(value) for key, value in values.items()}
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = [str(BIN / "train")]
    service.client("sagemaker").create_training_job(**request)


def test_script_mode_of_the_training_toolkit_runs_unmodified(shared_service):
    toolkit_job(shared_service, "toolkit", epochs=3, name="a b")
    completed(shared_service, "toolkit")
    for host in ("algo-1", "algo-2"):
        lines = shared_service.lines("toolkit", host)
        assert "arguments ['--epochs', '3', '--name', 'a b']" in lines, lines
        assert "data five rows" in lines and f"host {host} eth0 3" in lines and "lies in /opt/ml/code" in lines
    assert files_of(shared_service, "toolkit") == {"model.txt": b"a b after 3"}


def test_a_user_script_that_fails_in_the_toolkit_is_named_and_its_error_is_in_the_log(shared_service):
    toolkit_job(shared_service, "toolkit-fails", epochs=1, name="x", fail=1)
    reason = shared_service.wait("toolkit-fails", PATIENCE)["FailureReason"]
    assert reason.startswith("AlgorithmError: ExecuteUserScriptError") and "user_script.py" in reason
    assert "exit code: 1" in reason, reason
    assert "ValueError: the labels are missing" in shared_service.lines("toolkit-fails")
