"""What S3 is expected to do of lists, case by case: s3_cases.py."""

import pytest

from s3 import fill, new_bucket
from s3_cases import bucket, keys, prefixes, raw, s3


@pytest.fixture(params=["v1", "v2"])
def listing(s3, request):
    """A page of either version of the operation: keys, common prefixes, the whole answer."""
    def page(bucket, **options):
        answer = (s3.list_objects if request.param == "v1" else s3.list_objects_v2)(Bucket=bucket, **options)
        return keys(answer), prefixes(answer), answer
    return page


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
