"""Killed at any moment, or with the disk full, the store holds the old object or the new one, and nothing half made."""

import contextlib
import hashlib
import pathlib
import random
import subprocess
import threading
import time

import botocore.exceptions
import pytest

from conftest import running_service
from s3 import client, refused

MIB = 1 << 20


def body_of(seed, size):
    return hashlib.shake_128(str(seed).encode()).digest(size)


def leftovers(service):
    """Files that are no objects: temporary ones of a writer that is gone."""
    return [path for path in service.data.rglob(".tmp-*")]


@pytest.mark.parametrize("seed", range(6))
def test_a_put_survives_a_kill_as_a_whole_or_not_at_all(service, seed):
    """Puts go on until the kill; what was answered is there, and what was under way is old or new."""
    chance = random.Random(seed)
    s3 = client(service)
    s3.create_bucket(Bucket="bucket")
    answered, tried = {}, {}

    def write(worker):
        mine = client(service)
        with contextlib.suppress(botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
            for version in range(10_000):
                key = f"{worker}/{version % 3}"
                tried[key] = version
                mine.put_object(Bucket="bucket", Key=key, Body=body_of((worker, version), 700_000))
                answered[key] = version

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(3)]
    [thread.start() for thread in threads]
    time.sleep(chance.uniform(0.05, 1.0))  # Not to wait for anything: the moment is what is tried.
    service.kill()
    [thread.join() for thread in threads]
    service.start()
    s3 = client(service)
    found = {one["Key"] for one in s3.list_objects_v2(Bucket="bucket").get("Contents", [])}
    assert set(answered) <= found <= set(tried)
    for key in found:
        got = s3.get_object(Bucket="bucket", Key=key)
        body = got["Body"].read()
        worker = int(key.split("/")[0])
        allowed = [v for v in (answered.get(key), tried[key]) if v is not None]
        assert body in [body_of((worker, version), 700_000) for version in allowed], f"{key} is a mixture"
        assert got["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'
    assert leftovers(service) == []


@pytest.mark.parametrize("seed", range(6))
def test_an_upload_survives_a_kill_at_any_step(service, seed):
    """A client that goes on after the restart, as transfer managers do, completes the same upload."""
    chance = random.Random(100 + seed)
    s3 = client(service)
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="key", Body=b"old")
    bodies = [body_of((seed, number), 6 * MIB) for number in range(3)]
    upload = s3.create_multipart_upload(Bucket="bucket", Key="key")["UploadId"]
    etags = [None] * len(bodies)

    def step(index):
        mine = client(service)
        if index < len(bodies):
            etags[index] = mine.upload_part(Bucket="bucket", Key="key", UploadId=upload, PartNumber=index + 1,
                                            Body=bodies[index])["ETag"]
            return None
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, 1)]
        return mine.complete_multipart_upload(Bucket="bucket", Key="key", UploadId=upload,
                                              MultipartUpload={"Parts": parts})

    killed_at = chance.randrange(len(bodies) + 1)
    for index in range(len(bodies) + 1):
        if index == killed_at:
            killer = threading.Timer(chance.uniform(0.0, 0.12), service.kill)
            killer.start()
            with contextlib.suppress(botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
                step(index)
            killer.join()
            service.start()
            now = client(service).get_object(Bucket="bucket", Key="key")["Body"].read()
            assert now == b"old" or (index == len(bodies) and now == b"".join(bodies))
        answer = step(index)
    assert answer["ETag"].endswith('-3"')
    s3 = client(service)
    assert s3.get_object(Bucket="bucket", Key="key")["Body"].read() == b"".join(bodies)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="bucket")
    assert leftovers(service) == []
    assert [path for path in (service.data / "uploads").rglob("part-*")] == [], "the parts are gone"


@pytest.fixture
def small_disk(tmp_path):
    """The data directory on a file system of 48 MiB, in this test's own mount namespace."""
    data = tmp_path / "data"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "gruca-small", data], check=True)
    try:
        with running_service(tmp_path) as service:
            yield service
    finally:
        subprocess.run(["umount", data], check=True)


def test_a_full_disk_keeps_the_old_object_and_says_so(small_disk):
    s3 = client(small_disk)
    s3.create_bucket(Bucket="bucket")
    old = body_of(1, 20 * MIB)
    s3.put_object(Bucket="bucket", Key="key", Body=old)
    for _ in range(3):  # A failed put gives its room back.
        with pytest.raises(botocore.exceptions.ClientError) as caught:
            s3.put_object(Bucket="bucket", Key="key", Body=body_of(2, 40 * MIB))
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] in (500, 503, 507)
    assert s3.get_object(Bucket="bucket", Key="key")["Body"].read() == old
    assert leftovers(small_disk) == []
    upload = s3.create_multipart_upload(Bucket="bucket", Key="key")["UploadId"]
    etag = s3.upload_part(Bucket="bucket", Key="key", UploadId=upload, PartNumber=1, Body=body_of(3, 16 * MIB))["ETag"]
    with pytest.raises(botocore.exceptions.ClientError):  # The part is there, and no room for the whole.
        s3.complete_multipart_upload(Bucket="bucket", Key="key", UploadId=upload,
                                     MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})
    assert s3.get_object(Bucket="bucket", Key="key")["Body"].read() == old
    s3.abort_multipart_upload(Bucket="bucket", Key="key", UploadId=upload)
    new = body_of(4, 10 * MIB)
    s3.delete_object(Bucket="bucket", Key="key")
    s3.put_object(Bucket="bucket", Key="key", Body=new)
    assert s3.get_object(Bucket="bucket", Key="key")["Body"].read() == new
    assert leftovers(small_disk) == []


def test_an_abandoned_upload_outlives_a_restart_and_can_be_aborted(service):
    s3 = client(service)
    s3.create_bucket(Bucket="bucket")
    upload = s3.create_multipart_upload(Bucket="bucket", Key="key")["UploadId"]
    s3.upload_part(Bucket="bucket", Key="key", UploadId=upload, PartNumber=1, Body=b"x" * MIB)
    service.kill()
    service.start()
    s3 = client(service)
    listed, = s3.list_multipart_uploads(Bucket="bucket")["Uploads"]
    assert (listed["Key"], listed["UploadId"]) == ("key", upload)
    s3.abort_multipart_upload(Bucket="bucket", Key="key", UploadId=upload)
    with refused(404, "NoSuchUpload"):
        s3.list_parts(Bucket="bucket", Key="key", UploadId=upload)
    assert [path for path in pathlib.Path(service.data / "uploads").rglob("part-*")] == []
