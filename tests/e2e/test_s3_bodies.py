"""What S3 is expected to do of bodies and what is said of them, of signatures, and of what is not there: s3_cases.py."""

import base64
import hashlib
import socket
import threading
import urllib.error
import urllib.request

import botocore.exceptions
import pytest

from s3 import CHUNKED, Raw, aws_chunked, chunked_headers, client, crc32, fill, new_bucket, refused, sha256
from s3_cases import MIB, begin, bucket, keys, raw, s3

# Bodies and what is said of them.

def test_object_create_bad_md5_bad(s3, bucket):
    with refused(400, "BadDigest"):
        s3.put_object(Bucket=bucket, Key="foo", Body=b"bar", ContentMD5="rL0Y20xC+Fzt72VPzMSk2A==")
    assert keys(s3.list_objects(Bucket=bucket)) == []


def test_object_create_bad_md5_invalid_short(s3, bucket):
    for md5 in ("YWJyYWNhZGFicmE=", "???"):
        with refused(400, "InvalidDigest"):
            s3.put_object(Bucket=bucket, Key="foo", Body=b"bar", ContentMD5=md5)


def test_multi_object_delete_bad_digest(s3, bucket, raw):
    """A document that was damaged on its way deletes nothing."""
    fill(s3, bucket, ["foo"])
    document = b"<Delete><Object><Key>foo</Key></Object></Delete>"
    for header, wrong in (("content-md5", "rL0Y20xC+Fzt72VPzMSk2A=="), ("x-amz-checksum-crc32", crc32(b"other"))):
        status, _, body = raw("POST", f"/{bucket}?delete", document, headers={header: wrong})
        assert status == 400 and b"<Code>BadDigest</Code>" in body
    assert keys(s3.list_objects(Bucket=bucket)) == ["foo"]
    for header, right in (("content-md5", base64.b64encode(hashlib.md5(document).digest()).decode()),
                          ("x-amz-checksum-crc32", crc32(document))):
        status, _, body = raw("POST", f"/{bucket}?delete", document, headers={header: right})
        assert status == 200 and b"<Deleted>" in body


def test_object_create_bad_contentlength_none(bucket, raw):
    status, _, body = raw("PUT", f"/{bucket}/foo", aws_chunked(b"bar", {}),
                          unsigned={"Content-Length": None, "Transfer-Encoding": "chunked"})
    assert status == 411 and b"<Code>MissingContentLength</Code>" in body


def test_object_create_bad_sha256(s3, bucket, raw):
    status, _, body = raw("PUT", f"/{bucket}/foo", b"bar", sha=sha256(b"baz"))
    assert status == 400 and b"<Code>XAmzContentSHA256Mismatch</Code>" in body
    assert keys(s3.list_objects(Bucket=bucket)) == []


def test_object_create_too_large(bucket, raw):
    status, _, body = raw("PUT", f"/{bucket}/foo", b"", unsigned={"Content-Length": str((5 << 30) + 1)})
    assert status == 400 and b"<Code>EntityTooLarge</Code>" in body


VECTORS = {"crc32": "y/Q5Jg==", "crc32c": "4waSgw==", "crc64nvme": "rosUhgp5mIg=",
           "sha1": base64.b64encode(hashlib.sha1(b"123456789").digest()).decode(),
           "sha256": base64.b64encode(hashlib.sha256(b"123456789").digest()).decode()}


@pytest.mark.parametrize("algorithm", ["crc32", "crc32c", "crc64nvme", "sha1", "sha256"])
def test_object_checksum_sha256(s3, bucket, raw, algorithm):
    """Each algorithm, of "123456789", whose checksums are published."""
    body, value = b"123456789", VECTORS[algorithm]
    header = f"x-amz-checksum-{algorithm}"
    status, headers, _ = raw("PUT", f"/{bucket}/foo", body, headers={header: value})
    assert (status, headers[header]) == (200, value)
    status, headers, _ = raw("HEAD", f"/{bucket}/foo", headers={"x-amz-checksum-mode": "ENABLED"})
    assert (headers[header], headers["x-amz-checksum-type"]) == (value, "FULL_OBJECT")
    bad = base64.b64encode(bytes(len(base64.b64decode(value)))).decode()
    status, _, text = raw("PUT", f"/{bucket}/foo", b"other", headers={header: bad})
    assert status == 400 and b"<Code>BadDigest</Code>" in text
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == body


def test_object_checksum_trailer(s3, bucket, raw):
    data = hashlib.shake_128(b"seed").digest(300_001)
    put = lambda trailers, **more: raw("PUT", f"/{bucket}/foo", aws_chunked(data, trailers), sha=CHUNKED,
                                       headers={**chunked_headers(data), **more})
    status, _, body = put({"x-amz-checksum-crc32": crc32(data + b"x")})
    assert status == 400 and b"<Code>BadDigest</Code>" in body
    status, _, body = put({})
    assert status == 400, body
    status, _, body = put({"x-amz-checksum-crc32": crc32(data)}, **{"x-amz-decoded-content-length": "300000"})
    assert status == 400 and b"<Code>IncompleteBody</Code>" in body
    assert keys(s3.list_objects(Bucket=bucket)) == []
    status, headers, _ = put({"x-amz-checksum-crc32": crc32(data)})
    assert (status, headers["x-amz-checksum-crc32"]) == (200, crc32(data))
    got = s3.get_object(Bucket=bucket, Key="foo")
    assert got["Body"].read() == data and "ContentEncoding" not in got


def test_multipart_checksum_3parts(s3, bucket):
    """Composed of the parts' checksums, and checked when the client tells it."""
    bodies = [b"a" * (5 * MIB), b"b" * (5 * MIB), b"c"]
    upload = begin(s3, bucket, ChecksumAlgorithm="SHA256")
    parts = []
    for number, body in enumerate(bodies, 1):
        answer = s3.upload_part(Bucket=bucket, Key="mine", UploadId=upload, PartNumber=number, Body=body,
                                ChecksumAlgorithm="SHA256")
        parts.append({"PartNumber": number, "ETag": answer["ETag"], "ChecksumSHA256": answer["ChecksumSHA256"]})
    whole = base64.b64encode(hashlib.sha256(b"".join(hashlib.sha256(b).digest() for b in bodies)).digest()).decode()
    finish = lambda told: s3.complete_multipart_upload(Bucket=bucket, Key="mine", UploadId=upload,
                                                       MultipartUpload={"Parts": told})
    with refused(400, "InvalidPart"):
        finish([{**parts[0], "ChecksumSHA256": parts[1]["ChecksumSHA256"]}, *parts[1:]])
    answer = finish(parts)
    assert (answer["ChecksumSHA256"], answer["ChecksumType"]) == (f"{whole}-3", "COMPOSITE")
    head = s3.head_object(Bucket=bucket, Key="mine", ChecksumMode="ENABLED")
    assert head["ChecksumSHA256"] == f"{whole}-3"


def test_100_continue(s3, bucket, raw):
    """A put that is refused by its head is refused before its body is sent."""
    host, port = raw.host.split(":")
    for path, expected in ((f"/{bucket}/foo", b"HTTP/1.1 100"), ("/never-made/foo", b"HTTP/1.1 404")):
        fields = {**raw.signed("PUT", path), "Content-Length": "5", "Expect": "100-continue", "Host": raw.host}
        head = f"PUT {path} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in fields.items()) + "\r\n"
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(head.encode())
            assert connection.recv(12) == expected
            if b"100" in expected:
                connection.sendall(b"hello")
                rest = b""
                while b"HTTP/1.1 200" not in rest:
                    got = connection.recv(4096)
                    assert got, rest
                    rest += got
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == b"hello"


def test_incomplete_body_leaves_the_old_object(s3, bucket, raw):
    fill(s3, bucket, ["foo"])
    host, port = raw.host.split(":")
    fields = {**raw.signed("PUT", f"/{bucket}/foo"), "Content-Length": "100", "Host": raw.host}
    head = f"PUT /{bucket}/foo HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in fields.items()) + "\r\n"
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(head.encode() + b"half")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == b"foo"


def test_atomic_read_1mb(s3, bucket):
    """Who has begun to read goes on reading what it began, whatever is put meanwhile."""
    old, new = b"A" * (8 * MIB), b"B" * (8 * MIB)
    s3.put_object(Bucket=bucket, Key="foo", Body=old)
    got = s3.get_object(Bucket=bucket, Key="foo")
    first = got["Body"].read(1000)
    s3.put_object(Bucket=bucket, Key="foo", Body=new)
    assert first + got["Body"].read() == old
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == new


def test_atomic_dual_write_1mb(s3, bucket, shared_service):
    bodies = [b"A" * MIB, b"B" * MIB]
    threads = [threading.Thread(target=lambda b=body: client(shared_service).put_object(Bucket=bucket, Key="foo", Body=b))
               for body in bodies]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() in bodies


# Signatures.

def test_object_raw_get_x_amz_expires_not_expired(s3, bucket, shared_service):
    s3.put_object(Bucket=bucket, Key="a b/é", Body=b"bar")
    for version in ("s3v4", "s3"):
        signer = client(shared_service, config={"signature_version": version})
        url = signer.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "a b/é",
                                            "ResponseContentType": "text/x"}, ExpiresIn=1000)
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert answer.read() == b"bar" and answer.headers["Content-Type"] == "text/x"
    url = client(shared_service, config={"signature_version": "s3v4"}).generate_presigned_url(
        "put_object", Params={"Bucket": bucket, "Key": "put"}, ExpiresIn=1000)
    request = urllib.request.Request(url, data=b"sent", method="PUT", headers={"Content-Type": ""})
    assert urllib.request.urlopen(request, timeout=30).status == 200
    assert s3.get_object(Bucket=bucket, Key="put")["Body"].read() == b"sent"


@pytest.mark.parametrize("seconds", [0, -7, 609901])
def test_object_raw_get_x_amz_expires_out_range(bucket, shared_service, seconds):
    signer = client(shared_service, config={"signature_version": "s3v4"})
    url = signer.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "foo"}, ExpiresIn=seconds)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(url, timeout=30)
    assert caught.value.code in (400, 403)


# What is not there.

@pytest.mark.parametrize("call, status, code", [
    ("get_bucket_policy", 404, "NoSuchBucketPolicy"), ("get_bucket_tagging", 404, "NoSuchTagSet"),
    ("get_bucket_cors", 404, "NoSuchCORSConfiguration"), ("get_bucket_website", 404, "NoSuchWebsiteConfiguration"),
    ("get_bucket_lifecycle_configuration", 404, "NoSuchLifecycleConfiguration"),
    ("get_bucket_encryption", 404, "ServerSideEncryptionConfigurationNotFoundError"),
    ("list_object_versions", 501, "NotImplemented"), ("get_bucket_logging", 501, "NotImplemented")])
def test_bucket_sub_resources(s3, bucket, call, status, code):
    with refused(status, code):
        getattr(s3, call)(Bucket=bucket)


def test_versioning_bucket_create_suspend(s3, bucket):
    assert "Status" not in s3.get_bucket_versioning(Bucket=bucket)
    with pytest.raises(botocore.exceptions.ClientError):
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


def test_sse_kms_default_upload_1b(s3, bucket):
    """Asked for by the SageMaker SDK: taken, for the disk is the owner's."""
    s3.put_object(Bucket=bucket, Key="foo", Body=b"x", ServerSideEncryption="aws:kms", SSEKMSKeyId="k")
    assert s3.get_object(Bucket=bucket, Key="foo")["Body"].read() == b"x"


def test_expected_bucket_owner(s3, bucket):
    assert s3.head_bucket(Bucket=bucket, ExpectedBucketOwner="000000000000")
    with refused(403, "403"):
        s3.head_bucket(Bucket=bucket, ExpectedBucketOwner="111111111111")


def test_an_answer_without_100_ends_the_connection(shared_service, s3):
    """Botocore misreads the next answer on a connection where it waited for 100 and got the answer itself."""
    status, headers, _ = Raw(shared_service)("PUT", f"/{new_bucket(s3)}/empty", headers={"expect": "100-continue"})
    assert status == 200 and headers["connection"].lower() == "close"
