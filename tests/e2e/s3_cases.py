"""What the cases of S3's expectations (test_s3_listing.py and its neighbours) share. The tests are ours, written for
this service; their names are those of the ceph/s3-tests cases for the same expectation, so that docs/reference/s3.md can
be read beside that list."""

import datetime

import pytest

from s3 import Raw, client, new_bucket

MIB = 1 << 20
PAST = datetime.datetime(1994, 9, 29, 19, 43, 31, tzinfo=datetime.timezone.utc)
FUTURE = datetime.datetime(2100, 9, 29, 19, 43, 31, tzinfo=datetime.timezone.utc)


@pytest.fixture(scope="module")
def s3(shared_service):
    return client(shared_service)


@pytest.fixture(scope="module")
def raw(shared_service):
    return Raw(shared_service)


@pytest.fixture
def bucket(s3):
    return new_bucket(s3)


def keys(page):
    return [one["Key"] for one in page.get("Contents", [])]


def prefixes(page):
    return [one["Prefix"] for one in page.get("CommonPrefixes", [])]


def begin(s3, bucket, key="mine", **options):
    return s3.create_multipart_upload(Bucket=bucket, Key=key, **options)["UploadId"]


def part(s3, bucket, upload, number, body, key="mine", **options):
    return s3.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=number, Body=body, **options)["ETag"]


def complete(s3, bucket, upload, parts, key="mine", **options):
    return s3.complete_multipart_upload(
        Bucket=bucket, Key=key, UploadId=upload,
        MultipartUpload={"Parts": [{"PartNumber": number, "ETag": etag} for number, etag in parts]}, **options)
