"""What S3 is expected to do of conditions, ranges and copies, case by case: s3_cases.py."""

import hashlib
import threading

import botocore.exceptions
import pytest

from s3 import client, fill, new_bucket, refused
from s3_cases import FUTURE, MIB, PAST, bucket, keys, s3

# Conditions.

def test_get_object_conditions(s3, bucket):
    """test_get_object_ifmatch_*, _ifnonematch_*, _ifmodifiedsince_*, _ifunmodifiedsince_*."""
    etag = s3.put_object(Bucket=bucket, Key="foo", Body=b"bar")["ETag"]
    for operation in (s3.get_object, s3.head_object):
        get = lambda **condition: operation(Bucket=bucket, Key="foo", **condition)
        failed = "PreconditionFailed" if operation == s3.get_object else "412"
        assert get(IfMatch=etag) and get(IfNoneMatch="ABCORZ") and get(IfModifiedSince=PAST)
        assert get(IfUnmodifiedSince=FUTURE)
        with refused(412, failed):
            get(IfMatch='"ABCORZ"')
        with refused(304, "304"):
            get(IfNoneMatch=etag)
        with refused(304, "304"):
            get(IfModifiedSince=s3.head_object(Bucket=bucket, Key="foo")["LastModified"])
        with refused(412, failed):
            get(IfUnmodifiedSince=PAST)
        # An ETag decides over a time.
        assert get(IfMatch=etag, IfUnmodifiedSince=PAST)
        with refused(304, "304"):
            get(IfNoneMatch=etag, IfModifiedSince=PAST)


def test_put_object_ifmatch_good(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="foo", Body=b"bar")["ETag"]
    s3.put_object(Bucket=bucket, Key="foo", Body=b"zar", IfMatch=etag)
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == b"zar"


def test_put_object_ifmatch_failed(s3, bucket):
    fill(s3, bucket, ["foo"])
    with refused(412, "PreconditionFailed"):
        s3.put_object(Bucket=bucket, Key="foo", Body=b"zar", IfMatch='"ABCORZ"')
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == b"foo"


def test_put_object_ifmatch_nonexisted_failed(s3, bucket):
    with refused(404, "NoSuchKey"):
        s3.put_object(Bucket=bucket, Key="foo", Body=b"bar", IfMatch='"ABCORZ"')
    assert keys(s3.list_objects(Bucket=bucket)) == []


def test_put_object_ifnonmatch_nonexisted_good(s3, bucket):
    s3.put_object(Bucket=bucket, Key="foo", Body=b"bar", IfNoneMatch="*")
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == b"bar"


def test_put_object_ifnonmatch_overwrite_existed_failed(s3, bucket):
    fill(s3, bucket, ["foo"])
    with refused(412, "PreconditionFailed"):
        s3.put_object(Bucket=bucket, Key="foo", Body=b"zar", IfNoneMatch="*")
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == b"foo"


def test_atomic_conditional_write_1mb(s3, bucket, shared_service):
    """Of many who put if nothing is there, one succeeds, and its bytes are what is read."""
    outcomes, bodies = [], [bytes([65 + i]) * MIB for i in range(6)]
    start = threading.Barrier(len(bodies))

    def put(body):
        mine = client(shared_service)
        start.wait()
        try:
            mine.put_object(Bucket=bucket, Key="foo", Body=body, IfNoneMatch="*")
            outcomes.append(body)
        except botocore.exceptions.ClientError as error:
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 412

    threads = [threading.Thread(target=put, args=(body,)) for body in bodies]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(outcomes) == 1
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == outcomes[0]


# Ranges.

@pytest.mark.parametrize("asked, begin, end", [("4-7", 4, 8), ("4-", 4, 11), ("-7", 4, 11), ("-100", 0, 11),
                                              ("0-0", 0, 1), ("10-10", 10, 11), ("4-1000", 4, 11)])
def test_ranged_request_response_code(s3, bucket, asked, begin, end):
    content = b"testcontent"
    s3.put_object(Bucket=bucket, Key="foo", Body=content)
    got = s3.get_object(Bucket=bucket, Key="foo", Range=f"bytes={asked}")
    assert got["Body"].read() == content[begin:end]
    assert got["ContentRange"] == f"bytes {begin}-{end - 1}/11" and got["ResponseMetadata"]["HTTPStatusCode"] == 206


@pytest.mark.parametrize("asked", ["11-", "40-50", "-0"])
def test_ranged_request_invalid_range(s3, bucket, asked):
    s3.put_object(Bucket=bucket, Key="foo", Body=b"testcontent")
    with refused(416, "InvalidRange") as caught:
        s3.get_object(Bucket=bucket, Key="foo", Range=f"bytes={asked}")
    assert caught.value.response["ResponseMetadata"]["HTTPHeaders"]["content-range"] == "bytes */11"


def test_ranged_request_empty_object(s3, bucket):
    s3.put_object(Bucket=bucket, Key="foo", Body=b"")
    with refused(416, "InvalidRange"):
        s3.get_object(Bucket=bucket, Key="foo", Range="bytes=40-50")


@pytest.mark.parametrize("asked", ["bytes=0-1,4-5", "lines=1-2", "bytes=x-y", "bytes=5-2", "bytes=-"])
def test_ranged_request_ignored(s3, bucket, asked):
    s3.put_object(Bucket=bucket, Key="foo", Body=b"testcontent")
    assert s3.get_object(Bucket=bucket, Key="foo", Range=asked)["Body"].read() == b"testcontent"


def test_ranged_big_request_response_code(s3, bucket):
    body = hashlib.shake_128(b"seed").digest(8 * MIB)
    s3.put_object(Bucket=bucket, Key="foo", Body=body)
    got = s3.get_object(Bucket=bucket, Key="foo", Range="bytes=3145728-5242880")
    assert got["Body"].read() == body[3145728:5242881] and got["ContentLength"] == 2097153


# Copies.

def copy(s3, bucket, source, target, **options):
    return s3.copy_object(Bucket=bucket, Key=target, CopySource=source, **options)


def test_object_copy_same_bucket(s3, bucket):
    put = s3.put_object(Bucket=bucket, Key="foo123bar", Body=b"foo")
    answer = copy(s3, bucket, {"Bucket": bucket, "Key": "foo123bar"}, "bar321foo")
    assert answer["CopyObjectResult"]["ETag"] == put["ETag"]
    assert s3.get_object(Bucket=bucket, Key="bar321foo")["Body"].read() == b"foo"


def test_object_copy_zero_size(s3, bucket):
    s3.put_object(Bucket=bucket, Key="foo", Body=b"")
    copy(s3, bucket, {"Bucket": bucket, "Key": "foo"}, "bar")
    assert s3.head_object(Bucket=bucket, Key="bar")["ContentLength"] == 0


def test_object_copy_16m(s3, bucket):
    body = hashlib.shake_128(b"seed").digest(16 * MIB)
    s3.put_object(Bucket=bucket, Key="foo", Body=body)
    copy(s3, bucket, {"Bucket": bucket, "Key": "foo"}, "bar")
    assert s3.get_object(Bucket=bucket, Key="bar")["Body"].read() == body


def test_object_copy_diff_bucket(s3, bucket):
    other = new_bucket(s3)
    fill(s3, other, ["foo"])
    copy(s3, bucket, f"{other}/foo", "bar")
    assert s3.get_object(Bucket=bucket, Key="bar")["Body"].read() == b"foo"


def test_object_copy_to_itself(s3, bucket):
    fill(s3, bucket, ["foo"])
    with refused(400, "InvalidRequest"):
        copy(s3, bucket, {"Bucket": bucket, "Key": "foo"}, "foo")


def test_object_copy_to_itself_with_metadata(s3, bucket):
    fill(s3, bucket, ["foo"])
    copy(s3, bucket, {"Bucket": bucket, "Key": "foo"}, "foo", Metadata={"foo": "bar"}, MetadataDirective="REPLACE")
    got = s3.get_object(Bucket=bucket, Key="foo")
    assert (got["Body"].read(), got["Metadata"]) == (b"foo", {"foo": "bar"})


def test_object_copy_retaining_metadata(s3, bucket):
    s3.put_object(Bucket=bucket, Key="foo", Body=b"x", Metadata={"key1": "value1"}, ContentType="audio/ogg")
    copy(s3, bucket, {"Bucket": bucket, "Key": "foo"}, "bar")
    got = s3.head_object(Bucket=bucket, Key="bar")
    assert (got["Metadata"], got["ContentType"]) == ({"key1": "value1"}, "audio/ogg")


def test_object_copy_replacing_metadata(s3, bucket):
    s3.put_object(Bucket=bucket, Key="foo", Body=b"x", Metadata={"key1": "value1"}, ContentType="audio/ogg")
    copy(s3, bucket, {"Bucket": bucket, "Key": "foo"}, "bar", Metadata={"key3": "value3"}, MetadataDirective="REPLACE",
         ContentType="audio/mpeg")
    got = s3.head_object(Bucket=bucket, Key="bar")
    assert (got["Metadata"], got["ContentType"]) == ({"key3": "value3"}, "audio/mpeg")


def test_object_copy_bucket_not_found(s3, bucket):
    with refused(404, "NoSuchBucket"):
        copy(s3, bucket, {"Bucket": "never-made", "Key": "foo"}, "bar")


def test_object_copy_key_not_found(s3, bucket):
    with refused(404, "NoSuchKey"):
        copy(s3, bucket, {"Bucket": bucket, "Key": "foo"}, "bar")


@pytest.mark.parametrize("name", [" ", "_", "__", "?versionId", "a+b", "100%", "é/中", "a//b"])
def test_multipart_copy_special_names(s3, bucket, name):
    s3.put_object(Bucket=bucket, Key=name, Body=name.encode())
    copy(s3, bucket, {"Bucket": bucket, "Key": name}, "copy")
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == name.encode()


def test_object_copy_conditions(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="foo", Body=b"x")["ETag"]
    source = {"Bucket": bucket, "Key": "foo"}
    copy(s3, bucket, source, "bar", CopySourceIfMatch=etag)
    for condition in ({"CopySourceIfMatch": '"ABCORZ"'}, {"CopySourceIfNoneMatch": etag},
                      {"CopySourceIfUnmodifiedSince": PAST}):
        with refused(412, "PreconditionFailed"):
            copy(s3, bucket, source, "baz", **condition)
    assert keys(s3.list_objects(Bucket=bucket)) == ["bar", "foo"]
