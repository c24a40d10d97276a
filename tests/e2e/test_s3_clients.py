"""Clients that know S3 and not us: the AWS CLI, boto3's transfer manager, s5cmd, rclone, curl, and boto3 within a job."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess

import boto3.s3.transfer
import botocore.exceptions
import pytest

from conftest import ROOT
from s3 import TlsFront, client, new_bucket, refused

BIN = ROOT / ".venv/bin"
AWS = {"v1": [BIN / "aws"], "v2": ["/usr/bin/aws"]}
MIB = 1 << 20
NAMES = ["a.txt", "deep/er/b.bin", "with space+plus.txt", "per%20cent", "é/中文", "empty"]


@pytest.fixture(scope="module")
def s3(shared_service):
    return client(shared_service)


@pytest.fixture
def bucket(s3):
    return new_bucket(s3)


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """Longer than the memory the service may take: 96 MiB, of which no two pieces are equal."""
    path = tmp_path_factory.mktemp("big") / "big"
    block = hashlib.shake_128(b"seed").digest(MIB)
    with open(path, "wb") as file:
        for number in range(96):
            file.write(number.to_bytes(4, "big") + block[4:])
    yield path
    path.unlink()


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    for number, name in enumerate(NAMES):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"" if name == "empty" else hashlib.shake_128(name.encode()).digest(1000 * number + 1))
    return root


def contents(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in pathlib.Path(root).rglob("*") if path.is_file()}


def stored(s3, bucket, prefix=""):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return {one["Key"].removeprefix(prefix): s3.get_object(Bucket=bucket, Key=one["Key"])["Body"].read()
            for page in pages for one in page.get("Contents", [])}


def md5_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def peak_kib(service):
    """VmHWM: the most memory the service has ever had."""
    status = pathlib.Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_aws_cli_copies_syncs_lists_and_removes(shared_service, s3, tree, tmp_path, version):
    bucket = f"cli-{version}"

    def aws(*words):
        return shared_service.run(*AWS[version], "--endpoint-url", shared_service.endpoint, "s3", *words).stdout

    aws("mb", f"s3://{bucket}")
    aws("sync", tree, f"s3://{bucket}/up")
    assert stored(s3, bucket, "up/") == contents(tree)
    assert aws("sync", tree, f"s3://{bucket}/up") == "", "a second sync has nothing to do"
    aws("sync", f"s3://{bucket}/up", tmp_path / "down")
    assert contents(tmp_path / "down") == contents(tree)
    listed = aws("ls", f"s3://{bucket}/up/")
    assert "PRE deep/" in listed and "with space+plus.txt" in listed
    assert aws("ls", "--recursive", f"s3://{bucket}").count("\n") == len(NAMES)
    aws("cp", f"s3://{bucket}/up/per%20cent", f"s3://{bucket}/copied")
    aws("mv", f"s3://{bucket}/copied", f"s3://{bucket}/moved")
    aws("cp", f"s3://{bucket}/moved", tmp_path / "moved")
    assert (tmp_path / "moved").read_bytes() == (tree / "per%20cent").read_bytes()
    (tree / "a.txt").unlink()
    aws("sync", "--delete", tree, f"s3://{bucket}/up")
    assert set(stored(s3, bucket, "up/")) == set(NAMES) - {"a.txt"}
    aws("rm", "--recursive", f"s3://{bucket}")
    aws("rb", f"s3://{bucket}")
    with refused(404, "404"):
        s3.head_bucket(Bucket=bucket)


def test_the_aws_cli_finds_the_endpoint_in_the_profile(shared_service, s3, bucket, big):
    """And moves a long object in parts."""
    shared_service.run(BIN / "aws", "s3", "cp", "--quiet", big, f"s3://{bucket}/big")
    head = s3.head_object(Bucket=bucket, Key="big")
    assert head["ContentLength"] == big.stat().st_size and head["ETag"].endswith('-12"')


def test_the_transfer_manager_moves_a_long_object_in_little_memory(shared_service, s3, bucket, big, tmp_path):
    before = peak_kib(shared_service)
    config = boto3.s3.transfer.TransferConfig(max_concurrency=4)
    s3.upload_file(str(big), bucket, "big", Config=config)
    s3.copy({"Bucket": bucket, "Key": "big"}, bucket, "copy", Config=config)
    s3.download_file(bucket, "copy", str(tmp_path / "down"), Config=config)
    assert md5_of(tmp_path / "down") == md5_of(big)
    (tmp_path / "down").unlink()
    whole = hashlib.md5()
    for piece in s3.get_object(Bucket=bucket, Key="big")["Body"].iter_chunks(MIB):
        whole.update(piece)
    assert whole.hexdigest() == md5_of(big)
    with open(big, "rb") as body:  # And at once, in one put.
        assert s3.put_object(Bucket=bucket, Key="once", Body=body)["ETag"] == f'"{md5_of(big)}"'
    grown = peak_kib(shared_service) - before
    assert grown < 64 << 10, f"the service grew by {grown} KiB while it moved {big.stat().st_size} bytes"


def test_sdks_that_speak_tls_send_checksums_in_trailers(shared_service, bucket, tmp_path):
    front = TlsFront(shared_service.port, tmp_path)
    sent = []
    try:
        s3 = client(shared_service, endpoint_url=front.endpoint, verify=str(front.certificate))
        s3.meta.events.register("before-send.s3", lambda request, **_: sent.append(
            str(request.headers.get("x-amz-content-sha256", ""))))
        body = hashlib.shake_128(b"seed").digest(3 * MIB + 7)
        for algorithm in ("CRC32", "SHA1", "SHA256"):
            answer = s3.put_object(Bucket=bucket, Key=algorithm, Body=body, ChecksumAlgorithm=algorithm)
            assert answer["ETag"] == f'"{hashlib.md5(body).hexdigest()}"' and answer[f"Checksum{algorithm}"]
            got = s3.get_object(Bucket=bucket, Key=algorithm, ChecksumMode="ENABLED")  # Verified by boto3.
            assert got["Body"].read() == body and got[f"Checksum{algorithm}"] == answer[f"Checksum{algorithm}"]
        path = tmp_path / "up"
        path.write_bytes(body * 6)
        s3.upload_file(str(path), bucket, "parts")
        s3.download_file(bucket, "parts", str(tmp_path / "down"))
        assert (tmp_path / "down").read_bytes() == body * 6
    finally:
        front.close()
    assert any("STREAMING-UNSIGNED-PAYLOAD-TRAILER" in one for one in sent), sent


def test_s5cmd_moves_trees_and_long_objects(shared_service, s3, bucket, tree, big, tmp_path):
    def s5cmd(*words):
        return shared_service.run(BIN / "s5cmd", "--endpoint-url", shared_service.endpoint, *words).stdout

    s5cmd("cp", f"{tree}/", f"s3://{bucket}/up/")
    assert stored(s3, bucket, "up/") == contents(tree)
    s5cmd("sync", f"s3://{bucket}/up/*", f"{tmp_path}/down/")
    assert contents(tmp_path / "down") == contents(tree)
    assert s5cmd("ls", f"s3://{bucket}/up/").count("\n") == len(NAMES)
    s5cmd("cp", "--concurrency", "4", big, f"s3://{bucket}/big")
    s5cmd("cp", f"s3://{bucket}/big", tmp_path / "big")
    assert md5_of(tmp_path / "big") == md5_of(big)
    (tmp_path / "big").unlink()
    s5cmd("rm", f"s3://{bucket}/*")
    assert stored(s3, bucket) == {}


def test_rclone_syncs_and_checks(shared_service, s3, bucket, tree, big, tmp_path):
    access, secret = shared_service.keys
    config = tmp_path / "rclone.conf"
    config.write_text(f"[gruca]\ntype = s3\nprovider = Other\nenv_auth = false\naccess_key_id = {access}\n"
                      f"secret_access_key = {secret}\nendpoint = {shared_service.endpoint}\n"
                      f"region = {shared_service.region}\n")

    def rclone(*words):
        return shared_service.run(BIN / "rclone", "--config", config, *words).stdout

    rclone("sync", tree, f"gruca:{bucket}/up")
    assert stored(s3, bucket, "up/") == contents(tree)
    rclone("check", "--download", tree, f"gruca:{bucket}/up")
    rclone("sync", f"gruca:{bucket}/up", tmp_path / "down")
    assert contents(tmp_path / "down") == contents(tree)
    assert (tmp_path / "down/a.txt").stat().st_mtime == pytest.approx((tree / "a.txt").stat().st_mtime, abs=1e-3)
    rclone("copyto", "--s3-upload-cutoff", "16M", "--s3-chunk-size", "16M", big, f"gruca:{bucket}/big")
    rclone("check", f"{big.parent}", f"gruca:{bucket}", "--include", "/big")
    rclone("moveto", f"gruca:{bucket}/big", f"gruca:{bucket}/moved")
    assert set(stored(s3, bucket, "mo")) == {"ved"}
    rclone("purge", f"gruca:{bucket}/up")
    assert stored(s3, bucket, "up/") == {}


def test_many_clients_at_once_put_list_and_get(shared_service, s3, bucket):
    def work(number):
        mine = client(shared_service)
        for i in range(10):
            mine.put_object(Bucket=bucket, Key=f"{number}/{i}", Body=f"{number}-{i}".encode())
        return {key: body for key, body in stored(mine, bucket, f"{number}/").items()}

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for number, found in enumerate(pool.map(work, range(8))):
            assert found == {str(i): f"{number}-{i}".encode() for i in range(10)}


INSIDE = """
import boto3, botocore, json, os
s3 = boto3.client("s3")
s3.put_object(Bucket="data", Key="from/job", Body=b"hello")
seen = {"read": s3.get_object(Bucket="data", Key="train/x")["Body"].read().decode(),
        "listed": [one["Key"] for one in s3.list_objects_v2(Bucket="data")["Contents"]]}
s3.delete_object(Bucket="data", Key="train/x")
for name, call in (("create", lambda: s3.create_bucket(Bucket="mine")), ("remove", lambda: s3.delete_bucket(Bucket="data"))):
    try:
        call()
        seen[name] = "done"
    except botocore.exceptions.ClientError as error:
        seen[name] = error.response["Error"]["Code"]
seen["channel"] = open("/opt/ml/input/data/train/x").read()
json.dump(seen, open("/opt/ml/model/seen.json", "w"))
json.dump(dict(os.environ), open("/opt/ml/output/data/environment.json", "w"))
"""


def test_a_job_reads_and_writes_the_store_as_s3(shared_service, s3):
    """What `aws s3 cp` brought is a channel; what the job made, its artifact too, is read by boto3."""
    s3.create_bucket(Bucket="data")
    path = shared_service.home / "x"
    path.write_text("from outside")
    shared_service.run(BIN / "aws", "s3", "cp", path, "s3://data/train/x")
    program = shared_service.home / "inside.py"
    program.write_text(INSIDE)
    channel = {"ChannelName": "train", "DataSource": {"S3DataSource": {
        "S3DataType": "S3Prefix", "S3Uri": "s3://data/train/", "S3DataDistributionType": "FullyReplicated"}}}
    output = {"S3OutputPath": "s3://out/jobs", "CompressionType": "NONE"}
    python = os.path.realpath(BIN / "python")
    packages = next((ROOT / ".venv/lib").glob("python3*")) / "site-packages"
    shared_service.create("inside", f"PYTHONPATH={packages} {python} {program}", InputDataConfig=[channel],
                          OutputDataConfig=output)
    job = shared_service.wait("inside")
    assert job["TrainingJobStatus"] == "Completed", (job, shared_service.lines("inside"))
    made = stored(s3, "out", "jobs/inside/")
    seen = json.loads(next(body for key, body in made.items() if key.endswith("seen.json")))
    assert seen == {"read": "from outside", "listed": ["from/job", "train/x"], "create": "AccessDenied",
                    "remove": "AccessDenied", "channel": "from outside"}
    assert stored(s3, "data") == {"from/job": b"hello"}
    # An object that no S3 client wrote has an ETag that is not taken for an MD5.
    listed = s3.list_objects_v2(Bucket="out", Prefix="jobs/inside/")["Contents"]
    assert all(one["ETag"].endswith('-1"') for one in listed)
    # The job is over, and its key with it.
    environment = json.loads(next(body for key, body in made.items() if key.endswith("environment.json")))
    late = client(shared_service, aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
                  aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
                  aws_session_token=environment["AWS_SESSION_TOKEN"])
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        late.list_objects_v2(Bucket="data")
    assert caught.value.response["Error"]["Code"] in ("InvalidAccessKeyId", "ExpiredToken")


def test_curl_signs_for_itself(shared_service, s3, bucket):
    """S3 wants the body's hash named; old versions of curl sign it only when the caller names it."""
    access, secret = shared_service.keys
    s3.put_object(Bucket=bucket, Key="k", Body=b"by curl")
    done = subprocess.run(["curl", "-sf", "--aws-sigv4", f"aws:amz:{shared_service.region}:s3", "--user",
                           f"{access}:{secret}", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD",
                           f"{shared_service.endpoint}/{bucket}/k"], capture_output=True, timeout=60)
    assert done.stdout == b"by curl"
