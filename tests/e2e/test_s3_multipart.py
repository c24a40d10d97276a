"""What S3 is expected to do of multipart uploads, case by case: s3_cases.py."""

import hashlib
import resource
import shutil
import subprocess
import threading

import botocore.exceptions
import pytest

from conftest import running_service
from s3 import client, fill, refused
from s3_cases import MIB, begin, bucket, complete, keys, part, raw, s3


def test_multipart_upload(s3, bucket):
    bodies = [b"a" * (5 * MIB), b"b" * (5 * MIB + 1), b"c"]
    upload = begin(s3, bucket, ContentType="text/bla", Metadata={"foo": "bar"})
    parts = [(number, part(s3, bucket, upload, number, body)) for number, body in zip((1, 3, 10000), bodies)]
    assert keys(s3.list_objects(Bucket=bucket)) == []
    answer = complete(s3, bucket, upload, parts)
    md5s = b"".join(hashlib.md5(body).digest() for body in bodies)
    assert answer["ETag"] == f'"{hashlib.md5(md5s).hexdigest()}-3"'
    got = s3.get_object(Bucket=bucket, Key="mine")
    assert got["Body"].read() == b"".join(bodies)
    assert (got["ContentType"], got["Metadata"], got["ETag"]) == ("text/bla", {"foo": "bar"}, answer["ETag"])
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
    # The answer got lost, and the client asks again.
    assert complete(s3, bucket, upload, parts)["ETag"] == answer["ETag"]


def test_multipart_upload_empty(s3, bucket, raw):
    upload = begin(s3, bucket)
    status, _, body = raw("POST", f"/{bucket}/mine?uploadId={upload}", b"<CompleteMultipartUpload/>")
    assert status == 400 and b"<Code>MalformedXML</Code>" in body


def test_multipart_upload_small(s3, bucket):
    upload = begin(s3, bucket)
    complete(s3, bucket, upload, [(1, part(s3, bucket, upload, 1, b"x"))])
    assert s3.head_object(Bucket=bucket, Key="mine")["ContentLength"] == 1


def test_multipart_upload_size_too_small(s3, bucket):
    upload = begin(s3, bucket)
    parts = [(number, part(s3, bucket, upload, number, b"x" * 1000)) for number in (1, 2)]
    with refused(400, "EntityTooSmall"):
        complete(s3, bucket, upload, parts)
    assert keys(s3.list_objects(Bucket=bucket)) == []


def test_multipart_upload_resend_part(s3, bucket):
    upload = begin(s3, bucket)
    old = part(s3, bucket, upload, 1, b"a" * (5 * MIB))
    new = part(s3, bucket, upload, 1, b"b" * (5 * MIB))
    last = part(s3, bucket, upload, 2, b"c")
    with refused(400, "InvalidPart"):
        complete(s3, bucket, upload, [(1, old), (2, last)])
    complete(s3, bucket, upload, [(1, new), (2, last)])
    assert s3.get_object(Bucket=bucket, Key="mine")["Body"].read() == b"b" * (5 * MIB) + b"c"


def test_multipart_upload_overwrite_existing_object(s3, bucket):
    fill(s3, bucket, ["mine"])
    upload = begin(s3, bucket)
    complete(s3, bucket, upload, [(1, part(s3, bucket, upload, 1, b"new"))])
    assert s3.get_object(Bucket=bucket, Key="mine")["Body"].read() == b"new"


def test_multipart_put_object_if_nonmatch_overwrite_existed_failed(s3, bucket):
    fill(s3, bucket, ["mine"])
    upload = begin(s3, bucket)
    with refused(412, "PreconditionFailed"):
        complete(s3, bucket, upload, [(1, part(s3, bucket, upload, 1, b"new"))], IfNoneMatch="*")
    assert s3.get_object(Bucket=bucket, Key="mine")["Body"].read() == b"mine"


def test_multipart_upload_missing_part(s3, bucket):
    upload = begin(s3, bucket)
    etag = part(s3, bucket, upload, 1, b"x")
    with refused(400, "InvalidPart"):
        complete(s3, bucket, upload, [(9999, etag)])


def test_multipart_upload_incorrect_etag(s3, bucket):
    upload = begin(s3, bucket)
    part(s3, bucket, upload, 1, b"x")
    with refused(400, "InvalidPart"):
        complete(s3, bucket, upload, [(1, '"ffffffffffffffffffffffffffffffff"')])


def test_multipart_upload_part_order(s3, bucket):
    upload = begin(s3, bucket)
    parts = [(number, part(s3, bucket, upload, number, b"x" * (5 * MIB))) for number in (1, 2)]
    with refused(400, "InvalidPartOrder"):
        complete(s3, bucket, upload, parts[::-1])


@pytest.mark.parametrize("number", [0, 10001, -1])
def test_multipart_upload_bad_part_number(s3, bucket, raw, number):
    upload = begin(s3, bucket)
    status, _, body = raw("PUT", f"/{bucket}/mine?partNumber={number}&uploadId={upload}", b"x")
    assert status == 400 and b"<Code>InvalidArgument</Code>" in body


def test_abort_multipart_upload(s3, bucket):
    upload = begin(s3, bucket)
    etag = part(s3, bucket, upload, 1, b"x")
    s3.abort_multipart_upload(Bucket=bucket, Key="mine", UploadId=upload)
    for call in (lambda: complete(s3, bucket, upload, [(1, etag)]), lambda: part(s3, bucket, upload, 1, b"x"),
                 lambda: s3.list_parts(Bucket=bucket, Key="mine", UploadId=upload)):
        with refused(404, "NoSuchUpload"):
            call()
    assert keys(s3.list_objects(Bucket=bucket)) == []


def test_abort_multipart_upload_not_found(s3, bucket):
    for upload in ("56788", "../../x", "0" * 32):
        with refused(404, "NoSuchUpload"):
            s3.abort_multipart_upload(Bucket=bucket, Key="mine", UploadId=upload)


def test_list_multipart_upload(s3, bucket):
    uploads = {begin(s3, bucket, key): key for key in ("mymultipart", "mymultipart", "mymultipart2")}
    listed = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert {one["UploadId"]: one["Key"] for one in listed} == uploads
    assert all(one["Initiated"].year >= 2024 for one in listed)
    first = s3.list_multipart_uploads(Bucket=bucket, Prefix="mymultipart2")["Uploads"]
    assert [one["Key"] for one in first] == ["mymultipart2"]


def test_list_parts(s3, bucket):
    upload = begin(s3, bucket)
    etags = {number: part(s3, bucket, upload, number, b"x" * number) for number in (1, 2, 30)}
    page = s3.list_parts(Bucket=bucket, Key="mine", UploadId=upload, MaxParts=2)
    assert {one["PartNumber"]: one["ETag"] for one in page["Parts"]} == {1: etags[1], 2: etags[2]}
    assert page["IsTruncated"] and page["NextPartNumberMarker"] == 2
    rest = s3.list_parts(Bucket=bucket, Key="mine", UploadId=upload, PartNumberMarker=2)
    assert [(one["PartNumber"], one["Size"]) for one in rest["Parts"]] == [(30, 30)]


def test_multipart_copy_small(s3, bucket):
    body = hashlib.shake_128(b"seed").digest(6 * MIB)
    s3.put_object(Bucket=bucket, Key="source", Body=body)
    upload, parts = begin(s3, bucket), []
    for number, asked in ((1, f"bytes=0-{5 * MIB - 1}"), (2, f"bytes={5 * MIB}-{6 * MIB - 1}")):
        answer = s3.upload_part_copy(Bucket=bucket, Key="mine", UploadId=upload, PartNumber=number,
                                     CopySource={"Bucket": bucket, "Key": "source"}, CopySourceRange=asked)
        parts.append((number, answer["CopyPartResult"]["ETag"]))
    complete(s3, bucket, upload, parts)
    assert s3.get_object(Bucket=bucket, Key="mine")["Body"].read() == body


@pytest.mark.parametrize("asked", ["0-2", "bytes=0", "bytes=hello-world", "bytes=0-bar", "bytes=0-2,3-5"])
def test_multipart_copy_improper_range(s3, bucket, asked):
    fill(s3, bucket, ["source"])
    upload = begin(s3, bucket)
    with refused(400, "InvalidArgument"):
        s3.upload_part_copy(Bucket=bucket, Key="mine", UploadId=upload, PartNumber=1, CopySourceRange=asked,
                            CopySource={"Bucket": bucket, "Key": "source"})


def test_multipart_get_part(s3, bucket):
    fill(s3, bucket, ["foo"])
    got = s3.get_object(Bucket=bucket, Key="foo", PartNumber=1)
    assert got["Body"].read() == b"foo" and got["ContentRange"] == "bytes 0-2/3"
    with refused(416, "InvalidPartNumber"):
        s3.get_object(Bucket=bucket, Key="foo", PartNumber=2)


# Two who end one upload, and what comes between.

def parts_left(service, upload):
    return list((service.data / "uploads").rglob(f"{upload}.d/*"))


def test_multipart_completed_once_however_often_asked(shared_service, s3, bucket):
    """What another client puts after a completion stays, whoever else is still completing."""
    upload = begin(s3, bucket)
    parts = [(number, part(s3, bucket, upload, number, b"x" * (8 * MIB))) for number in (1, 2)]
    answers = []

    def end():
        mine = client(shared_service)
        try:
            etag = complete(mine, bucket, upload, parts)["ETag"]
            mine.put_object(Bucket=bucket, Key="mine", Body=b"newer")
            answers.append(etag)
        except botocore.exceptions.ClientError as error:
            answers.append(error.response["Error"]["Code"])

    threads = [threading.Thread(target=end) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert s3.get_object(Bucket=bucket, Key="mine")["Body"].read() == b"newer"
    etags = {answer for answer in answers if answer.startswith('"')}
    assert len(etags) == 1 and set(answers) - etags <= {"NoSuchUpload"}, answers
    assert parts_left(shared_service, upload) == []


def test_multipart_ifmatch_holds_until_the_end(shared_service, s3, bucket):
    """A put during the completion comes before it, which then fails, or after it."""
    for _ in range(3):
        fill(s3, bucket, ["mine"])
        upload = begin(s3, bucket)
        parts = [(number, part(s3, bucket, upload, number, b"x" * (8 * MIB))) for number in (1, 2)]
        put = threading.Thread(
            target=lambda: client(shared_service).put_object(Bucket=bucket, Key="mine", Body=b"newer"))
        put.start()
        etag = '"' + hashlib.md5(b"mine").hexdigest() + '"'
        try:
            complete(s3, bucket, upload, parts, IfMatch=etag)
        except botocore.exceptions.ClientError as error:
            assert error.response["Error"]["Code"] == "PreconditionFailed"
        put.join()
        assert s3.get_object(Bucket=bucket, Key="mine")["Body"].read() == b"newer"


def test_multipart_completed_but_its_parts_left(shared_service, s3, bucket):
    """As after a kill between the two: asking again removes them."""
    upload = begin(s3, bucket)
    parts = [(1, part(s3, bucket, upload, 1, b"x"))]
    place, = (shared_service.data / "uploads").rglob(f"{upload}.d")
    saved = place.with_name("saved")
    shutil.copytree(place, saved)
    answer = complete(s3, bucket, upload, parts)
    assert parts_left(shared_service, upload) == []
    saved.rename(place)
    assert complete(s3, bucket, upload, parts)["ETag"] == answer["ETag"]
    assert parts_left(shared_service, upload) == []
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_multipart_of_more_parts_than_files_may_be_open(service):
    s3 = client(service)
    s3.create_bucket(Bucket="bucket")
    upload = begin(s3, "bucket")
    etag = part(s3, "bucket", upload, 1, b"x" * (5 * MIB))
    first, = (service.data / "uploads").rglob(f"{upload}.d/part-00001")
    for number in range(2, 302):
        first.with_name(f"part-{number:05}").hardlink_to(first)
    resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (250, 250))
    with refused(400, "InvalidPart"):  # The last one, when all were looked at.
        complete(s3, "bucket", upload, [(number, etag) for number in range(1, 303)])


def test_multipart_object_size(s3, bucket, raw):
    upload = begin(s3, bucket)
    etag = part(s3, bucket, upload, 1, b"abc")
    document = (f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>"
                "</CompleteMultipartUpload>").encode()
    for size, expected in (("4", 400), ("x", 400), ("3", 200)):
        status, _, body = raw("POST", f"/{bucket}/mine?uploadId={upload}", document,
                              headers={"x-amz-mp-object-size": size})
        assert (status, b"InvalidRequest" in body) == (expected, expected == 400), body


def test_multipart_put_object_ifnonematch_is_a_star(s3, bucket):
    upload = begin(s3, bucket)
    parts = [(1, part(s3, bucket, upload, 1, b"x"))]
    with refused(501, "NotImplemented"):
        complete(s3, bucket, upload, parts, IfNoneMatch='"abc"')
    complete(s3, bucket, upload, parts, IfNoneMatch="*")


def test_multipart_complete_bad_digest(s3, bucket, raw):
    """Content-MD5 is of the document; a checksum would be of the object."""
    upload = begin(s3, bucket)
    etag = part(s3, bucket, upload, 1, b"abc")
    document = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
    status, _, body = raw("POST", f"/{bucket}/mine?uploadId={upload}", document.encode(),
                          headers={"content-md5": "rL0Y20xC+Fzt72VPzMSk2A=="})
    assert status == 400 and b"<Code>BadDigest</Code>" in body


def test_list_multipart_upload_paged(s3, bucket):
    made = sorted([(key, begin(s3, bucket, key=key)) for key in ("a", "a", "a", "b/1", "b/2", "c d", "e")])
    listed = []
    markers = {}
    for _ in range(len(made)):
        page = s3.list_multipart_uploads(Bucket=bucket, MaxUploads=2, **markers)
        assert page["MaxUploads"] == 2
        listed += [(one["Key"], one["UploadId"]) for one in page["Uploads"]]
        if not page["IsTruncated"]:
            break
        markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
    assert listed == made
    behind = s3.list_multipart_uploads(Bucket=bucket, KeyMarker="a")["Uploads"]
    assert [one["Key"] for one in behind] == ["b/1", "b/2", "c d", "e"]
    rolled, markers = [], {}
    for _ in range(len(made)):
        page = s3.list_multipart_uploads(Bucket=bucket, Delimiter="/", MaxUploads=1, **markers)
        rolled += [one["Key"] for one in page.get("Uploads", [])]
        rolled += [one["Prefix"] for one in page.get("CommonPrefixes", [])]
        if not page["IsTruncated"]:
            break
        markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page.get("NextUploadIdMarker", "")}
    assert rolled == ["a", "a", "a", "b/", "c d", "e"]
    encoded = s3.list_multipart_uploads(Bucket=bucket, Prefix="c ", EncodingType="url")
    assert (encoded["EncodingType"], [one["Key"] for one in encoded["Uploads"]]) == ("url", ["c%20d"])


def test_multipart_where_files_have_no_attributes(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "gruca-plain", data], check=True)
    try:
        with running_service(tmp_path) as service:
            s3 = client(service)
            s3.create_bucket(Bucket="bucket")
            with refused(501, "NotImplemented"):
                begin(s3, "bucket")
            s3.put_object(Bucket="bucket", Key="mine", Body=b"x")
            assert s3.get_object(Bucket="bucket", Key="mine")["Body"].read() == b"x"
    finally:
        subprocess.run(["umount", data], check=True)
