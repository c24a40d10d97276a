"""What S3 is expected to do of buckets and objects, case by case: s3_cases.py."""

import os

import botocore
import pytest

from s3 import client, fill, new_bucket, refused
from s3_cases import FUTURE, bucket, keys, raw, s3

# Buckets.

def test_bucket_notexist(s3):
    for call in (s3.list_objects, s3.list_objects_v2, s3.delete_bucket, s3.get_bucket_location):
        with refused(404, "NoSuchBucket"):
            call(Bucket="never-made")
    with refused(404, "NoSuchBucket"):
        s3.put_object(Bucket="never-made", Key="k", Body=b"")
    with refused(404, "NoSuchBucket"):
        s3.get_object(Bucket="never-made", Key="k")


def test_bucket_head(s3, bucket):
    assert s3.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"] == 200
    with refused(404, "404"):
        s3.head_bucket(Bucket="never-made")


def test_bucket_delete_nonempty(s3, bucket):
    fill(s3, bucket, ["foo"])
    with refused(409, "BucketNotEmpty"):
        s3.delete_bucket(Bucket=bucket)


def test_bucket_create_delete(s3, bucket):
    fill(s3, bucket, ["deep/er/foo"])
    s3.delete_object(Bucket=bucket, Key="deep/er/foo")
    assert s3.head_bucket(Bucket=bucket)  # Empty, and still there.
    s3.delete_bucket(Bucket=bucket)
    with refused(404, "NoSuchBucket"):
        s3.delete_bucket(Bucket=bucket)


def test_bucket_delete_that_had_a_checkpoint(s3, bucket, shared_service):
    """The directory that was made for a job's checkpoints is kept, but not for ever."""
    for name in ("ckpt.d", "ckpt.d/7.d"):
        directory = shared_service.data / "store" / f"{bucket}.d" / name
        directory.mkdir()
        (directory / ".keep").touch()
    s3.delete_bucket(Bucket=bucket)
    with refused(404, "NoSuchBucket"):
        s3.list_objects(Bucket=bucket)


def test_bucket_create_exists(s3, bucket):
    with refused(409, "BucketAlreadyOwnedByYou"):
        s3.create_bucket(Bucket=bucket)


@pytest.mark.parametrize("name", ["a", "aa", "b" * 64, "Upper", "under_score", "two..dots", "-dash", "dash-"])
def test_bucket_create_naming_bad(raw, name):
    status, _, body = raw("PUT", f"/{name}")
    assert status == 400 and b"<Code>InvalidBucketName</Code>" in body


def test_bucket_get_location(s3, bucket, shared_service):
    assert s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] in (None, shared_service.region)


def test_buckets_create_then_list(s3):
    made = {new_bucket(s3) for _ in range(3)}
    listed = s3.list_buckets()["Buckets"]
    assert made <= {one["Name"] for one in listed}
    assert all(one["CreationDate"].year >= 2024 for one in listed)


def test_list_buckets_anonymous(shared_service):
    anonymous = client(shared_service, config={"signature_version": botocore.UNSIGNED})
    with refused(403, "AccessDenied"):
        anonymous.list_buckets()


def test_list_buckets_invalid_auth(shared_service):
    with refused(403, "InvalidAccessKeyId"):
        client(shared_service, aws_access_key_id="nobody").list_buckets()


def test_list_buckets_bad_auth(shared_service):
    with refused(403, "SignatureDoesNotMatch"):
        client(shared_service, aws_secret_access_key="wrong").list_buckets()


# Objects.

def test_object_read_not_exist(s3, bucket):
    with refused(404, "NoSuchKey"):
        s3.get_object(Bucket=bucket, Key="bar")
    with refused(404, "404"):
        s3.head_object(Bucket=bucket, Key="bar")


def test_object_requestid_matches_header_on_error(bucket, raw):
    status, headers, body = raw("GET", f"/{bucket}/bar")
    assert status == 404 and f"<RequestId>{headers['x-amz-request-id']}</RequestId>".encode() in body


def test_object_head_zero_bytes(s3, bucket):
    s3.put_object(Bucket=bucket, Key="foo", Body=b"")
    assert s3.head_object(Bucket=bucket, Key="foo")["ContentLength"] == 0


def test_object_write_check_etag(s3, bucket):
    answer = s3.put_object(Bucket=bucket, Key="foo", Body=b"bar")
    assert answer["ETag"] == '"37b51d194a7513e45b56f6524f2d51f2"'


def test_object_write_cache_control(s3, bucket):
    kept = {"CacheControl": "public, max-age=14400", "ContentType": "text/plain; charset=x", "ContentLanguage": "sl",
            "ContentDisposition": 'attachment; filename="a b"', "ContentEncoding": "gzip"}
    s3.put_object(Bucket=bucket, Key="foo", Body=b"bar", Expires=FUTURE, **kept)
    head = s3.head_object(Bucket=bucket, Key="foo")
    assert {name: head[name] for name in kept} == kept and head["ExpiresString"].startswith("Wed, 29 Sep 2100")


def test_object_write_read_update_read_delete(s3, bucket):
    for body in (b"bar", b"soup"):
        s3.put_object(Bucket=bucket, Key="foo", Body=body)
        assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == body
    s3.delete_object(Bucket=bucket, Key="foo")
    s3.delete_object(Bucket=bucket, Key="foo")  # Once more is no failure.
    with refused(404, "NoSuchKey"):
        s3.get_object(Bucket=bucket, Key="foo")


def test_object_metadata_replaced_on_put(s3, bucket):
    s3.put_object(Bucket=bucket, Key="foo", Body=b"bar", Metadata={"Meta1": "bar", "two": "x, y"})
    assert s3.head_object(Bucket=bucket, Key="foo")["Metadata"] == {"meta1": "bar", "two": "x, y"}
    s3.put_object(Bucket=bucket, Key="foo", Body=b"bar")
    assert s3.get_object(Bucket=bucket, Key="foo")["Metadata"] == {}


def test_object_set_get_metadata_too_large(s3, bucket):
    s3.put_object(Bucket=bucket, Key="foo", Body=b"", Metadata={"a": "x" * 2047})
    with refused(400, "MetadataTooLarge"):
        s3.put_object(Bucket=bucket, Key="foo", Body=b"", Metadata={"a": "x" * 2048})


NAMES = [" ", '"', "$", "%", "&", "'", "<", ">", "_", "_ ", "_ _", "__", "a+b", "a%20b", "a?b#c", "a//b", "/lead", "dir/",
         ".", "..", "a/../b", ".tmp-x", ".keep", "a.d", "a.d/b", "x.more", "back\\slash", "\x01\x7f", "tab\tline\nreturn\r",
         "e\u0301", "é", "中文", "\U0001f600", "a", "a/b", "k" * 1024, "/".join(["é" * 127] * 4), "n" * 255 + "/" + "m" * 256]


def test_bucket_create_special_key_names(s3, bucket):
    for name in NAMES:
        s3.put_object(Bucket=bucket, Key=name, Body=name.encode(), Metadata={"n": "1"})
    for name in NAMES:
        got = s3.get_object(Bucket=bucket, Key=name)
        assert (got["Body"].read(), got["Metadata"]) == (name.encode(), {"n": "1"}), name
    assert keys(s3.list_objects_v2(Bucket=bucket)) == sorted(NAMES, key=str.encode)
    for name in NAMES[::2]:
        s3.delete_object(Bucket=bucket, Key=name)
    assert keys(s3.list_objects(Bucket=bucket)) == sorted(NAMES[1::2], key=str.encode)


def test_object_key_too_long(s3, bucket, raw):
    with refused(400, "KeyTooLongError"):
        s3.put_object(Bucket=bucket, Key="k" * 1025, Body=b"")
    status, _, body = raw("PUT", f"/{bucket}/%ff")
    assert status == 400, body


def test_multi_object_delete(s3, bucket):
    names = [f"key{i}" for i in range(4)] + ["a&b<c", "%41"]
    fill(s3, bucket, names + ["%2541", "A"])
    wanted = {"Objects": [{"Key": name} for name in names]}
    answer = s3.delete_objects(Bucket=bucket, Delete=wanted)
    assert [one["Key"] for one in answer["Deleted"]] == names and "Errors" not in answer
    again = s3.delete_objects(Bucket=bucket, Delete={**wanted, "Quiet": True})
    assert "Deleted" not in again and "Errors" not in again
    assert keys(s3.list_objects(Bucket=bucket)) == ["%2541", "A"]


def test_multi_object_delete_key_limit(s3, bucket):
    fill(s3, bucket, ["key-0", "key-999"])
    s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": f"key-{i}"} for i in range(1000)]})
    assert keys(s3.list_objects(Bucket=bucket)) == []
    with refused(400, "MalformedXML"):
        s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": f"key-{i}"} for i in range(1001)]})


@pytest.mark.parametrize("document", [
    "", "<Delete>", "<Delete/>", "<Other/>", "<Delete><Object/></Delete>",
    '<!DOCTYPE d [<!ENTITY a "b">]><Delete><Object><Key>&a;</Key></Object></Delete>', "<Delete>" + "<a>" * 10000])
def test_multi_object_delete_malformed(bucket, raw, document):
    status, _, body = raw("POST", f"/{bucket}?delete", document.encode())
    assert status == 400 and b"<Code>MalformedXML</Code>" in body


def test_object_with_a_header_that_is_not_utf8(s3, bucket, raw):
    """One such object must not make its bucket unlistable."""
    status, _, _ = raw("PUT", f"/{bucket}/foo", b"bar", unsigned={"Content-Disposition": "attachment; filename=\xdc"})
    assert status == 200
    assert keys(s3.list_objects_v2(Bucket=bucket)) == ["foo"]
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == b"bar"


def test_object_beside_which_lies_junk(s3, bucket, shared_service):
    """Jobs write into the directories of the store too."""
    fill(s3, bucket, ["foo"])
    path, = (shared_service.data / "store").rglob(f"{bucket}.d/foo")
    os.setxattr(path, "user.gruca", b"\xdc{")
    assert keys(s3.list_objects_v2(Bucket=bucket)) == ["foo"]
    got = s3.get_object(Bucket=bucket, Key="foo")
    assert got["Body"].read() == b"foo" and got["ETag"].endswith('-1"')


def test_what_is_not_known_is_no_put_or_delete(s3, bucket, raw):
    fill(s3, bucket, ["foo"])
    for method, path, headers in (("PUT", f"/{bucket}/foo?renameObject", {"x-amz-rename-source": "/x/y"}),
                                  ("PUT", f"/{bucket}/foo", {"x-amz-write-offset-bytes": "3"}),
                                  ("PUT", "/never-made?versioning", {}),
                                  ("DELETE", f"/{bucket}/foo?renameObject", {}),
                                  ("DELETE", f"/{bucket}?metadataTable", {})):
        status, _, body = raw(method, path, b"", headers=headers)
        assert status == 501 and b"<Code>NotImplemented</Code>" in body, (method, path)
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == b"foo"
    assert "never-made" not in [one["Name"] for one in s3.list_buckets()["Buckets"]]


def test_multi_object_delete_of_a_version(s3, bucket):
    fill(s3, bucket, ["foo", "bar"])
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [
        {"Key": "foo", "VersionId": "1"}, {"Key": "bar", "VersionId": "null"}]})
    assert [(one["Key"], one["Code"]) for one in answer["Errors"]] == [("foo", "NotImplemented")]
    assert [one["Key"] for one in answer["Deleted"]] == ["bar"]
    assert keys(s3.list_objects(Bucket=bucket)) == ["foo"]
