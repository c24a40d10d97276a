"""What a program finds in its instance, and what becomes of what it leaves behind."""

import io
import json
import tarfile

from conftest import wait_until


def artifact(service, name, which="model"):
    data = service.fetch(f"s3://out/jobs/{name}/output/{which}.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        return {m.name.removeprefix("./"): (tar.extractfile(m).read().decode() if m.isfile() else m) for m in tar
                if m.name not in (".", "./")}


def channel(name, uri, **members):
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, **members}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}}


def test_two_instances_find_each_other_and_their_configuration(shared_service):
    script = """
    cp /opt/ml/input/config/resourceconfig.json /opt/ml/model/resource-$(hostname)
    cp /opt/ml/input/config/hyperparameters.json /opt/ml/model/hyper-$(hostname)
    env > /opt/ml/model/env-$(hostname)
    getent hosts algo-1 algo-2 > /opt/ml/model/hosts-$(hostname)
    echo extra > /opt/ml/output/data/extra-$(hostname)
    ls / > /dev/null; pwd
    """
    shared_service.create("pair", script, instances=2, HyperParameters={"lr": "0.1"}, Environment={"MY_FLAG": "7"})
    job = shared_service.wait("pair")
    assert job["TrainingJobStatus"] == "Completed", job
    files = artifact(shared_service, "pair")
    for host in ("algo-1", "algo-2"):
        resource = json.loads(files[f"resource-{host}"])
        assert resource["current_host"] == host and resource["hosts"] == ["algo-1", "algo-2"]
        assert resource["network_interface_name"] == "eth0"
        assert resource["instance_groups"] == [{"instance_group_name": "homogeneousCluster", "hosts": ["algo-1", "algo-2"],
                                                "instance_type": "ml.m5.large"}]
        assert json.loads(files[f"hyper-{host}"]) == {"lr": "0.1"}
        env = dict(line.split("=", 1) for line in files[f"env-{host}"].splitlines() if "=" in line)
        assert env["TRAINING_JOB_NAME"] == "pair" and env["MY_FLAG"] == "7"
        assert env["TRAINING_JOB_ARN"] == job["TrainingJobArn"] and env["OMP_WAIT_POLICY"].lower() == "passive"
        addresses = [line.split()[0] for line in files[f"hosts-{host}"].splitlines()]
        assert len(set(addresses)) == 2 and not any(a.startswith("127.") for a in addresses)
    assert files["hosts-algo-1"] == files["hosts-algo-2"]
    assert set(artifact(shared_service, "pair", "output")) == {"extra-algo-1", "extra-algo-2"}


def test_channels_are_replicated_or_dealt_by_key(shared_service):
    for i in range(5):
        shared_service.put(f"object {i}", f"s3://in/set/part-{i}")
    shared_service.put("deep", "s3://in/set/sub/deep")
    script = 'cd /opt/ml/input/data; find . -type f | sort > /opt/ml/model/seen-$(hostname); cat all/sub/deep >> /opt/ml/model/seen-$(hostname)'
    shared_service.create("channels", script, instances=2, InputDataConfig=[
        channel("all", "s3://in/set/"), channel("dealt", "s3://in/set/part-", S3DataDistributionType="ShardedByS3Key")])
    assert shared_service.wait("channels")["TrainingJobStatus"] == "Completed", shared_service.describe("channels")
    files = artifact(shared_service, "channels")
    seen = {host: files[f"seen-{host}"].splitlines() for host in ("algo-1", "algo-2")}
    for lines in seen.values():
        assert [line for line in lines if line.startswith("./all/")] == [f"./all/part-{i}" for i in range(5)] + ["./all/sub/deep"]
        assert lines[-1] == "deep"
    dealt = [{line for line in lines if line.startswith("./dealt/")} for lines in seen.values()]
    assert dealt[0] | dealt[1] == {f"./dealt/part-{i}" for i in range(5)} and not dealt[0] & dealt[1]
    assert {len(part) for part in dealt} == {2, 3}


def test_checkpoints_of_any_program_go_up_while_it_runs_and_come_back(shared_service):
    config = {"S3Uri": "s3://ckpt/foreign", "LocalPath": "/opt/ml/checkpoints"}
    script = "echo one > /opt/ml/checkpoints/step-1; echo written; while [ ! -e /opt/ml/checkpoints/go ]; do sleep 0.05; [ -e /tmp/never ] && exit; i=$((i+1)); [ $i -gt 400 ] && break; done; echo two > /opt/ml/checkpoints/step-2"
    shared_service.create("saver", script, CheckpointConfig=config)
    shared_service.wait_for_log("saver", "written")
    wait_until(lambda: "step-1" in shared_service.keys_under("s3://ckpt/foreign/"), "step-1 is in the store while the job runs")
    assert shared_service.describe("saver")["TrainingJobStatus"] == "InProgress"
    shared_service.wait("saver")
    assert shared_service.fetch("s3://ckpt/foreign/step-2") == b"two\n"
    shared_service.create("resumed", "cat /opt/ml/checkpoints/step-*", CheckpointConfig=config)
    shared_service.wait("resumed")
    assert shared_service.lines("resumed") == ["one", "two"]


def test_a_failure_file_becomes_the_reason(shared_service):
    shared_service.create("fails", 'echo "disk is on fire" > /opt/ml/output/failure; exit 3')
    job = shared_service.wait("fails")
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith("AlgorithmError: disk is on fire") and "exit code: 3" in job["FailureReason"]
    assert len(job["FailureReason"]) <= 1024


def test_a_crashed_rank_ends_the_whole_job_and_is_named(shared_service):
    script = 'if [ $(hostname) = algo-2 ]; then echo "about to die"; sleep 0.2; kill -SEGV $$; fi; while :; do sleep 0.1; done'
    shared_service.create("crash", script, instances=2)
    job = shared_service.wait("crash")
    assert job["TrainingJobStatus"] == "Failed" and "algo-2" in job["FailureReason"], job["FailureReason"]
    assert "signal 11" in job["FailureReason"]


def test_a_missing_program_is_named(shared_service):
    request = shared_service.request("no-program")
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["/no/such/program"]
    shared_service.client("sagemaker").create_training_job(**request)
    job = shared_service.wait("no-program")
    assert job["TrainingJobStatus"] == "Failed" and "/no/such/program" in job["FailureReason"]


def test_a_missing_prefix_is_a_client_error_that_names_it(shared_service):
    shared_service.create("no-data", "true", InputDataConfig=[channel("train", "s3://nowhere/at/all")])
    job = shared_service.wait("no-data")
    assert job["TrainingJobStatus"] == "Failed" and job["FailureReason"].startswith("ClientError:")
    assert "s3://nowhere/at/all" in job["FailureReason"] and "train" in job["FailureReason"]


def test_max_runtime_stops_and_says_so(shared_service):
    shared_service.create("long", "while :; do sleep 0.1; done", StoppingCondition={"MaxRuntimeInSeconds": 1})
    job = shared_service.wait("long")
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")


def test_the_whole_tree_dies_whatever_it_does(shared_service):
    script = """
    trap '' TERM
    setsid sh -c 'trap "" TERM; while :; do sleep 0.1; done' &
    (setsid sh -c '(trap "" TERM HUP; exec sleep 98765) &' ) &
    echo started; while :; do sleep 0.1; done
    """
    shared_service.create("stubborn", script)
    shared_service.wait_for_log("stubborn", "started")
    shared_service.client("sagemaker").stop_training_job(TrainingJobName="stubborn")
    assert shared_service.wait("stubborn")["TrainingJobStatus"] == "Stopped"
    listed = shared_service.run("ps", "-eo", "args").stdout
    assert "sleep 98765" not in listed
