"""gruca/llm-trainer end to end: text to tokens to a model, on one and two instances, stopped, resumed, and given bad data."""

import io
import json
import pathlib
import random
import tarfile

import pytest

from conftest import running_service, wait_until

WORDS = ("the cluster trains a small model on plain text and every node reads its own part of the data while the "
         "service keeps the log of each step so that nothing is lost when a machine fails").split()


def text(sentences, seed):
    chance = random.Random(seed)
    return "\n".join(" ".join(chance.choice(WORDS) for _ in range(12)) + "." for _ in range(sentences))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    with running_service(tmp_path_factory.mktemp("trainer")) as service:
        corpus = service.home / "corpus"
        corpus.mkdir()
        for i in range(20):
            (corpus / f"doc-{i}.txt").write_text(text(60, i))
        service.gruca("data", "tokenizer", "--vocabulary", "400", "--output", service.home / "tokenizer.json", "--input", corpus)
        service.gruca("data", "tokenize", "--tokenizer", service.home / "tokenizer.json", "--output", service.home / "shards",
                      "--validation-fraction", "0.1", "--input", corpus)
        service.gruca("store", "cp", "-r", service.home / "shards/train", "s3://lab/train")
        service.gruca("store", "cp", "-r", service.home / "shards/validation", "s3://lab/validation")
        service.gruca("store", "cp", service.home / "tokenizer.json", "s3://lab/tokenizer/tokenizer.json")
        yield service


def train(service, name, steps=30, instances=1, checkpoint=None, channels=("train", "validation", "tokenizer"), **hyperparameters):
    request = service.request(name, instances=instances)
    request["AlgorithmSpecification"]["TrainingImage"] = "gruca/llm-trainer"
    request["HyperParameters"] = {
        "architecture": "llama", "layers": "2", "width": "32", "heads": "2", "context_length": "32", "max_steps": str(steps),
        "global_batch_size": "8", "micro_batch_size": "4", "learning_rate": "0.01", "warmup_steps": "3", "eval_interval": "10",
        "checkpoint_interval": "10", "seed": "3", "log_interval": "1", **{k: str(v) for k, v in hyperparameters.items()}}
    request["InputDataConfig"] = [
        {"ChannelName": c, "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://lab/{c}/"}}} for c in channels]
    if checkpoint:
        request["CheckpointConfig"] = {"S3Uri": checkpoint}
    service.client("sagemaker").create_training_job(**request)


def events(service, name, kind, host="algo-1"):
    found = []
    for line in service.lines(name, host):
        if line.startswith('{"event":'):
            event = json.loads(line)
            if event["event"] == kind:
                found.append(event)
    return found


def model(service, name, tmp_path):
    target = tmp_path / name
    with tarfile.open(fileobj=io.BytesIO(service.fetch(f"s3://out/jobs/{name}/output/model.tar.gz"))) as tar:
        tar.extractall(target)
    return target


def test_two_instances_train_as_one_does(data, tmp_path):
    train(data, "one")
    train(data, "two", instances=2)
    for name in ("one", "two"):
        job = data.wait(name)
        assert job["TrainingJobStatus"] == "Completed", (job, data.lines(name)[-20:])
    losses = {name: [e["loss"] for e in events(data, name, "step")] for name in ("one", "two")}
    assert len(losses["one"]) == 30 and losses["one"][-1] < losses["one"][0] - 0.5
    assert losses["two"] == pytest.approx(losses["one"], rel=2e-4)
    assert events(data, "two", "eval")[-1]["eval_loss"] == pytest.approx(events(data, "one", "eval")[-1]["eval_loss"], rel=1e-3)


def test_the_model_is_a_hugging_face_directory_that_continues_a_sentence(data, tmp_path):
    import safetensors.numpy
    import tokenizers
    train(data, "product")
    assert data.wait("product")["TrainingJobStatus"] == "Completed"
    directory = model(data, "product", tmp_path)
    config = json.loads((directory / "config.json").read_text())
    weights = safetensors.numpy.load_file(directory / "model.safetensors")
    assert config["model_type"] == "llama" and weights["model.embed_tokens.weight"].shape == (config["vocab_size"], 32)
    tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    assert tokenizer.decode(tokenizer.encode("the cluster trains").ids) == "the cluster trains"
    first = data.gruca("model", "generate", "--model", directory, "--prompt", "the cluster", "--tokens", "12", "--seed", "4").stdout
    again = data.gruca("model", "generate", "--model", directory, "--prompt", "the cluster", "--tokens", "12", "--seed", "4").stdout
    assert first == again and len(first.split()) > 4


def test_a_new_job_with_the_same_checkpoints_goes_on_bit_for_bit(data, tmp_path):
    train(data, "unbroken", steps=600, instances=2)
    assert data.wait("unbroken")["TrainingJobStatus"] == "Completed"
    # A job that is told to stop writes a checkpoint and ends well; a new job takes it from there.
    train(data, "broken", steps=600, instances=2, checkpoint="s3://ckpt/broken")
    wait_until(lambda: len(events(data, "broken", "step")) >= 12, "a dozen steps are done")
    data.client("sagemaker").stop_training_job(TrainingJobName="broken")
    job = data.wait("broken")
    assert job["TrainingJobStatus"] == "Stopped", (job, data.lines("broken")[-20:])
    done = [e["step"] for e in events(data, "broken", "step")]
    assert 12 <= done[-1] < 600
    train(data, "goes-on", steps=600, instances=2, checkpoint="s3://ckpt/broken")
    job = data.wait("goes-on")
    assert job["TrainingJobStatus"] == "Completed", (job, data.lines("goes-on")[-20:])
    resumed = events(data, "goes-on", "step")
    assert resumed[0]["step"] == done[-1] + 1
    whole = {e["step"]: e["loss"] for e in events(data, "unbroken", "step")}
    assert {e["step"]: e["loss"] for e in resumed} == {s: whole[s] for s in range(done[-1] + 1, 601)}
    a, b = model(data, "unbroken", tmp_path), model(data, "goes-on", tmp_path)
    assert (a / "model.safetensors").read_bytes() == (b / "model.safetensors").read_bytes()


def failure(service, name):
    job = service.wait(name)
    assert job["TrainingJobStatus"] == "Failed", (job["TrainingJobStatus"], service.lines(name)[-20:])
    return job["FailureReason"]


def test_an_unknown_hyperparameter_is_named_with_the_nearest(data):
    train(data, "typo", learning_rat="1")
    reason = failure(data, "typo")
    assert "learning_rat" in reason and "learning_rate" in reason


def test_heads_that_do_not_divide_the_width_are_named(data):
    train(data, "heads", width=32, heads=3)
    reason = failure(data, "heads")
    assert "32" in reason and "3" in reason and "heads" in reason


def test_a_corpus_shorter_than_a_sample_names_both_numbers(data):
    train(data, "short", context_length=100000)
    assert "100001" in failure(data, "short") or "100000" in failure(data, "short")


def test_a_token_beyond_the_vocabulary_is_found(data, tmp_path):
    small = tmp_path / "small"
    (small / "docs").mkdir(parents=True)
    (small / "docs/a.txt").write_text(text(30, 1))
    data.gruca("data", "tokenizer", "--vocabulary", "300", "--output", small / "tokenizer.json", "--input", small / "docs")
    data.gruca("store", "cp", small / "tokenizer.json", "s3://lab/small/tokenizer.json")
    request_channels = ("train", "small")
    train(data, "beyond", channels=request_channels)
    reason = failure(data, "beyond")
    assert "vocabulary" in reason or "tokenizer" in reason


def test_a_full_disk_costs_the_checkpoint_being_written_and_no_other(data, tmp_path):
    import subprocess
    store = tmp_path / "home/data/store"
    store.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "gruca-test", store], check=True)
    try:
        with running_service(tmp_path / "home") as service:
            for channel in ("train", "validation", "tokenizer"):
                source = data.home / ("shards/" + channel if channel != "tokenizer" else "tokenizer.json")
                target = f"s3://lab/{channel}" + ("/tokenizer.json" if channel == "tokenizer" else "")
                service.gruca("store", "cp", *(["-r"] if source.is_dir() else []), source, target)
            # About 10 MiB a checkpoint: the first fits, the second does not.
            settings = dict(width=128, layers=4, checkpoint_interval=5, eval_interval=0)
            train(service, "fills", steps=20, instances=2, checkpoint="s3://ckpt/disk", **settings)
            reason = failure(service, "fills")
            assert "space" in reason.lower(), reason
            assert "00000005/manifest.json" in service.keys_under("s3://ckpt/disk/")
            assert service.survivors() == []
            subprocess.run(["mount", "-o", "remount,size=200m", store], check=True)
            train(service, "goes-on", steps=20, instances=2, checkpoint="s3://ckpt/disk", **settings)
            assert service.wait("goes-on")["TrainingJobStatus"] == "Completed", service.lines("goes-on")[-20:]
            assert events(service, "goes-on", "step")[0]["step"] == 6
    finally:
        subprocess.run(["umount", "-l", store], check=True)
