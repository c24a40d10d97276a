"""What S3 is expected to do, case by case. The tests are ours, written for this service; their names are those of the
ceph/s3-tests cases for the same expectation, so that docs/reference/s3.md can be read beside that list."""

import base64
import datetime
import hashlib
import socket
import threading
import urllib.error
import urllib.request

import botocore
import botocore.exceptions
import pytest

from s3 import CHUNKED, Raw, aws_chunked, chunked_headers, client, crc32, fill, new_bucket, refused, sha256

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


@pytest.fixture(params=["v1", "v2"])
def listing(s3, request):
    """A page of either version of the operation: keys, common prefixes, the whole answer."""
    def page(bucket, **options):
        answer = (s3.list_objects if request.param == "v1" else s3.list_objects_v2)(Bucket=bucket, **options)
        return keys(answer), prefixes(answer), answer
    return page


# Listing.

def test_bucket_list_empty(listing, bucket):
    assert listing(bucket)[:2] == ([], [])


def test_bucket_list_distinct(s3, bucket, listing):
    other = new_bucket(s3)
    fill(s3, other, ["asdf"])
    assert listing(bucket)[0] == []


def test_bucket_list_many(s3, bucket):
    fill(s3, bucket, ["foo", "bar", "baz"])
    first = s3.list_objects(Bucket=bucket, MaxKeys=2)
    assert (keys(first), first["IsTruncated"]) == (["bar", "baz"], True)
    rest = s3.list_objects(Bucket=bucket, Marker="baz", MaxKeys=2)
    assert (keys(rest), rest["IsTruncated"]) == (["foo"], False)


def test_bucket_listv2_many(s3, bucket):
    fill(s3, bucket, ["foo", "bar", "baz"])
    first = s3.list_objects_v2(Bucket=bucket, MaxKeys=2)
    assert (keys(first), first["IsTruncated"], first["KeyCount"]) == (["bar", "baz"], True, 2)
    rest = s3.list_objects_v2(Bucket=bucket, StartAfter="baz", MaxKeys=2)
    assert (keys(rest), rest["IsTruncated"]) == (["foo"], False)


def test_bucket_listv2_continuationtoken(s3, bucket):
    fill(s3, bucket, ["bar", "baz", "foo", "quxx"])
    first = s3.list_objects_v2(Bucket=bucket, MaxKeys=1)
    rest = s3.list_objects_v2(Bucket=bucket, ContinuationToken=first["NextContinuationToken"], StartAfter="zzz")
    assert rest["ContinuationToken"] == first["NextContinuationToken"]
    assert (keys(rest), rest["IsTruncated"]) == (["baz", "foo", "quxx"], False)


def test_bucket_list_delimiter_basic(s3, bucket, listing):
    fill(s3, bucket, ["foo/bar", "foo/bar/xyzzy", "quux/thud", "asdf"])
    found = listing(bucket, Delimiter="/")
    assert found[:2] == (["asdf"], ["foo/", "quux/"]) and found[2]["Delimiter"] == "/"


@pytest.mark.parametrize("delimiter", ["a", "%", " ", ".", "\n", "aa"])
def test_bucket_listv2_delimiter_alt(s3, bucket, listing, delimiter):
    fill(s3, bucket, [f"b{delimiter}r", f"b{delimiter}z", f"c{delimiter}b", "foo"])
    assert listing(bucket, Delimiter=delimiter)[:2] == (["foo"], sorted([f"b{delimiter}", f"c{delimiter}"]))


def test_bucket_list_delimiter_prefix(s3, bucket):
    fill(s3, bucket, ["asdf", "boo/bar", "boo/baz/xyzzy", "cquux/thud", "cquux/bla"])

    def walk(prefix, pages):
        marker = ""
        for wanted_keys, wanted_prefixes, max_keys in pages:
            page = s3.list_objects(Bucket=bucket, Delimiter="/", Marker=marker, MaxKeys=max_keys, Prefix=prefix)
            assert (keys(page), prefixes(page)) == (wanted_keys, wanted_prefixes)
            marker = page.get("NextMarker")
        assert marker is None and not page["IsTruncated"]

    walk("", [(["asdf"], [], 1), ([], ["boo/"], 1), ([], ["cquux/"], 1)])
    walk("", [(["asdf"], ["boo/"], 2), ([], ["cquux/"], 2)])
    walk("boo/", [(["boo/bar"], [], 1), ([], ["boo/baz/"], 1)])


def test_bucket_listv2_delimiter_prefix(s3, bucket):
    fill(s3, bucket, ["asdf", "boo/bar", "boo/baz/xyzzy", "cquux/thud", "cquux/bla"])
    found, options = [], {}
    while True:
        page = s3.list_objects_v2(Bucket=bucket, Delimiter="/", MaxKeys=1, **options)
        assert page["KeyCount"] == 1
        found += keys(page) + prefixes(page)
        if not page["IsTruncated"]:
            break
        options = {"ContinuationToken": page["NextContinuationToken"]}
    assert found == ["asdf", "boo/", "cquux/"]


def test_bucket_list_delimiter_prefix_ends_with_delimiter(s3, bucket, listing):
    fill(s3, bucket, ["asdf/"])
    assert listing(bucket, Prefix="asdf/", Delimiter="/")[:2] == (["asdf/"], [])


def test_bucket_list_delimiter_not_exist(s3, bucket, listing):
    fill(s3, bucket, ["bar", "baz", "cab", "foo"])
    assert listing(bucket, Delimiter="/")[:2] == (["bar", "baz", "cab", "foo"], [])


def test_bucket_list_delimiter_empty(s3, bucket, listing):
    fill(s3, bucket, ["bar", "foo"])
    found = listing(bucket, Delimiter="")
    assert found[0] == ["bar", "foo"] and "Delimiter" not in found[2]


def test_bucket_list_delimiter_not_skip_special(s3, bucket, listing):
    names = ["0/"] + [f"0/{i}" for i in range(10, 30)] + ["1999", "1999#", "1999+", "2000"]
    fill(s3, bucket, names)
    assert listing(bucket, Delimiter="/")[:2] == (["1999", "1999#", "1999+", "2000"], ["0/"])


def test_bucket_list_encoding_basic(s3, bucket, raw):
    fill(s3, bucket, ["foo+1/bar", "foo/bar/xyzzy", "quux ab/thud", "asdf+b"])
    status, _, body = raw("GET", f"/{bucket}?delimiter=%2F&encoding-type=url")
    assert status == 200 and b"<Prefix>foo%2B1/</Prefix>" in body and b"<Prefix>quux%20ab/</Prefix>" in body
    assert b"<Key>asdf%2Bb</Key>" in body and b"<EncodingType>url</EncodingType>" in body
    assert prefixes(s3.list_objects_v2(Bucket=bucket, Delimiter="/")) == ["foo+1/", "foo/", "quux ab/"]


def test_bucket_list_prefix_basic(s3, bucket, listing):
    fill(s3, bucket, ["foo/bar", "foo/baz", "quux"])
    found = listing(bucket, Prefix="foo/")
    assert found[:2] == (["foo/bar", "foo/baz"], []) and found[2]["Prefix"] == "foo/"


def test_bucket_list_prefix_alt(s3, bucket, listing):
    fill(s3, bucket, ["bar", "baz", "foo"])
    assert listing(bucket, Prefix="ba")[0] == ["bar", "baz"]
    assert listing(bucket, Prefix="")[0] == ["bar", "baz", "foo"]
    assert listing(bucket, Prefix="d")[0] == []


def test_bucket_list_prefix_unreadable(s3, bucket, listing):
    fill(s3, bucket, ["foo/bar", "\x0abar"])
    assert listing(bucket, Prefix="\x0a")[0] == ["\x0abar"]


def test_bucket_list_prefix_delimiter_alt(s3, bucket, listing):
    fill(s3, bucket, ["bar", "bazar", "cab", "foo"])
    assert listing(bucket, Prefix="ba", Delimiter="a")[:2] == (["bar"], ["baza"])


def test_bucket_list_maxkeys_one(s3, bucket, listing):
    fill(s3, bucket, ["bar", "baz", "foo"])
    found = listing(bucket, MaxKeys=1)
    assert found[0] == ["bar"] and found[2]["IsTruncated"]


def test_bucket_list_maxkeys_zero(s3, bucket, listing):
    fill(s3, bucket, ["bar"])
    found = listing(bucket, MaxKeys=0)
    assert found[0] == [] and not found[2]["IsTruncated"]


def test_bucket_list_maxkeys_none(s3, bucket, listing):
    fill(s3, bucket, ["bar"])
    assert listing(bucket)[2]["MaxKeys"] == 1000


def test_bucket_list_maxkeys_invalid(bucket, raw):
    status, _, body = raw("GET", f"/{bucket}?max-keys=blah")
    assert status == 400 and b"<Code>InvalidArgument</Code>" in body


def test_bucket_list_marker_not_in_list(s3, bucket):
    fill(s3, bucket, ["bar", "baz", "foo", "quxx"])
    assert keys(s3.list_objects(Bucket=bucket, Marker="blah")) == ["foo", "quxx"]
    assert keys(s3.list_objects(Bucket=bucket, Marker="zzz")) == []


def test_bucket_list_unordered(s3, bucket):
    """The order is that of UTF-8's bytes, which is neither that of UTF-16 nor of directories."""
    names = ["a", "a!", "a/", "a/b", "a//b", "a0", "é", "\uffee", "\U0001f600", "A"]
    fill(s3, bucket, names)
    assert keys(s3.list_objects_v2(Bucket=bucket)) == sorted(names, key=str.encode)


def test_bucket_list_return_data(s3, bucket):
    fill(s3, bucket, ["bar", "baz"])
    for one in s3.list_objects(Bucket=bucket)["Contents"]:
        head = s3.head_object(Bucket=bucket, Key=one["Key"])
        assert (one["ETag"], one["Size"]) == (head["ETag"], head["ContentLength"])
        assert one["LastModified"].replace(microsecond=0) == head["LastModified"]
        assert one["Owner"]["ID"]


def test_bucket_listv2_fetchowner_notempty(s3, bucket):
    fill(s3, bucket, ["foo"])
    assert "Owner" in s3.list_objects_v2(Bucket=bucket, FetchOwner=True)["Contents"][0]
    assert "Owner" not in s3.list_objects_v2(Bucket=bucket)["Contents"][0]


def test_bucket_list_special_prefix(s3, bucket, listing):
    fill(s3, bucket, ["_bla/1", "_bla/2", "abcd"])
    assert listing(bucket)[0] == ["_bla/1", "_bla/2", "abcd"]
    assert listing(bucket, Prefix="_bla/")[0] == ["_bla/1", "_bla/2"]


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


# Multipart uploads.

def begin(s3, bucket, key="mine", **options):
    return s3.create_multipart_upload(Bucket=bucket, Key=key, **options)["UploadId"]


def part(s3, bucket, upload, number, body, key="mine", **options):
    return s3.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=number, Body=body, **options)["ETag"]


def complete(s3, bucket, upload, parts, key="mine", **options):
    return s3.complete_multipart_upload(
        Bucket=bucket, Key=key, UploadId=upload,
        MultipartUpload={"Parts": [{"PartNumber": number, "ETag": etag} for number, etag in parts]}, **options)


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


# Bodies and what is said of them.

def test_object_create_bad_md5_bad(s3, bucket):
    with refused(400, "BadDigest"):
        s3.put_object(Bucket=bucket, Key="foo", Body=b"bar", ContentMD5="rL0Y20xC+Fzt72VPzMSk2A==")
    assert keys(s3.list_objects(Bucket=bucket)) == []


def test_object_create_bad_md5_invalid_short(s3, bucket):
    for md5 in ("YWJyYWNhZGFicmE=", "???"):
        with refused(400, "InvalidDigest"):
            s3.put_object(Bucket=bucket, Key="foo", Body=b"bar", ContentMD5=md5)


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
