"""Bytes that no SDK sends, to both doors of a running service: the API's and the one for objects. Each is answered with
the right error or cut, never obeyed; the service's memory stays bounded and the next caller is served. What one parser
does with one head or body is held by src/net/hostile_client_test.cpp; here the whole service stands behind it."""

import datetime
import http.client
import json
import pathlib
import re
import socket
import time

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import botocore.exceptions
import pytest

from s3 import Raw, client, quote, refused

MIB = 1 << 20
GROWTH_MAX_KIB = 96 << 10  # Of the whole file's requests together; one body may have 16 MiB and is read into JSON.
PATIENCE = 90  # Longer than the service waits for a head.

DOORS = {
    "api": "POST / HTTP/1.1\r\nHost: h\r\nX-Amz-Target: SageMaker.ListTrainingJobs\r\n",
    "s3": "PUT /bucket/key HTTP/1.1\r\nHost: h\r\n",
}
SMUGGLED = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"


def peak_kib(service):
    status = pathlib.Path(f"/proc/{service.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1))


@pytest.fixture(scope="module", autouse=True)
def bounded_and_alive(shared_service):
    """Around all of them: the service neither grows nor ends nor says that it failed."""
    shared_service.client("sagemaker").list_training_jobs()
    before = peak_kib(shared_service)
    yield
    assert shared_service.process.poll() is None
    shared_service.client("sagemaker").list_training_jobs()
    grown = peak_kib(shared_service) - before
    assert grown < GROWTH_MAX_KIB, f"grown by {grown} KiB"
    assert "InternalError" not in shared_service.log() and ") failed:" not in shared_service.log()


@pytest.fixture(autouse=True)
def still_answers(shared_service):
    yield
    assert shared_service.client("sts").get_caller_identity()["Account"] == "000000000000"


@pytest.fixture(scope="module")
def s3(shared_service):
    s3 = client(shared_service)
    s3.create_bucket(Bucket="bucket")
    return s3


def connect(service):
    return socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE)


def read_to_end(connection):
    """What comes until the service closes; that it does is part of the test."""
    answer = b""
    try:
        while piece := connection.recv(1 << 16):
            answer += piece
    except ConnectionResetError:
        pass
    return answer.decode(errors="replace")


def exchange(service, data):
    with connect(service) as connection:
        try:
            connection.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # Already refused: the answer says how.
        return read_to_end(connection)


def status_of(answer):
    assert answer.startswith("HTTP/1.1 "), answer[:200]
    return int(answer[9:12])


# The head.

@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("fields", [
    "Content-Length: 5\r\nTransfer-Encoding: chunked", "Content-Length: 5\r\nContent-Length: 6",
    "X: 1\r\n folded", "X: 1\nY: 2", "Content-Length : 5", "X: a\0b", "Content-Length: -1",
    "Content-Length: 99999999999999999999", "Transfer-Encoding: gzip, chunked"],
    ids=["both", "two_lengths", "folded", "bare_feed", "blank_before_colon", "nul", "negative", "huge", "gzip"])
def test_a_smuggled_request_is_never_answered_and_the_connection_is_closed(shared_service, door, fields):
    answer = exchange(shared_service, f"{DOORS[door]}{fields}\r\n\r\n{SMUGGLED}")
    assert status_of(answer) == 400 and "Connection: close" in answer, answer
    assert answer.count("HTTP/1.1 ") == 1


@pytest.mark.parametrize("door", DOORS)
def test_a_head_beyond_its_limits_is_refused_before_anything_else(shared_service, door):
    assert status_of(exchange(shared_service, DOORS[door] + "X: " + "x" * MIB)) == 431
    assert status_of(exchange(shared_service, DOORS[door] + "X: 1\r\n" * 5000 + "\r\n")) in (400, 431)
    assert status_of(exchange(shared_service, DOORS[door] + "X: 1\r\n" * 300 + "\r\n")) == 400
    assert status_of(exchange(shared_service, "GET /" + "a" * 200_000 + " HTTP/1.1\r\nHost: h\r\n\r\n")) == 431


def test_slow_heads_hold_up_nobody_and_are_cut(shared_service):
    """Two hundred at once, a byte now and then; the service still answers beside them, and waits for none for ever."""
    slow = [connect(shared_service) for _ in range(200)]
    for connection in slow:
        connection.sendall(b"POST / HTTP/1.1\r\nX: ")
    end = time.monotonic() + PATIENCE
    last = slow[-1]
    last.settimeout(0)
    cut = False
    while not cut and time.monotonic() < end:
        shared_service.client("sts").get_caller_identity()
        try:
            last.send(b"x")
            cut = last.recv(100) == b""
        except BlockingIOError:
            time.sleep(0.5)
        except OSError:
            cut = True
    assert cut, "a head that never ends is waited for"
    assert all(read_to_end(connection) == "" for connection in slow[:-1])
    for connection in slow:
        connection.close()


# The body.

CHUNKED = "Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("chunks", ["-1\r\nx\r\n", "fffffffffffffffff\r\nx", "ffffffffffffffff\r\nx", "0x5\r\nabcde\r\n", "zz\r\n",
                                    "1;" + "x" * MIB, "0\r\nX: " + "x" * MIB],
                         ids=["negative", "overflow", "most", "prefix", "letters", "extension", "trailer"])
def test_a_body_in_wrong_chunks_ends_the_connection(shared_service, door, chunks):
    answer = exchange(shared_service, DOORS[door] + CHUNKED + chunks + "\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
    assert answer == "" or 400 <= status_of(answer) < 500, answer
    assert answer.count("HTTP/1.1 ") <= 1


def test_a_body_of_an_object_in_wrong_chunks_makes_no_object(shared_service, s3):
    raw = Raw(shared_service)
    fields = raw.signed("PUT", "/bucket/cut", {"x-amz-decoded-content-length": "5", "content-encoding": "aws-chunked"},
                        "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
    head = "PUT /bucket/cut HTTP/1.1\r\nHost: %s\r\n" % raw.host
    head += "".join(f"{name}: {value}\r\n" for name, value in fields.items() if name.lower() != "host")
    for body in ("-5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n", "6\r\nhello!\r\n0\r\n\r\n", "4\r\nhell\r\n0\r\n\r\n",
                 "ffffffffffffffff\r\nhello", "5;" + "x" * MIB, "5\r\nhello\r\n0\r\nx-evil: 1\r\n\r\n"):
        answer = exchange(shared_service, f"{head}Content-Length: {len(body)}\r\n\r\n{body}")
        assert status_of(answer) == 400, answer
        assert re.search("<Code>(InvalidRequest|IncompleteBody)</Code>", answer), answer
    with refused(404, "404"):
        s3.head_object(Bucket="bucket", Key="cut")


# What is in the body, signed by a client that means ill.

class Api:
    """Requests with a right signature and whatever body, type and target the test wants."""

    def __init__(self, service):
        access, secret = service.keys
        self.service = service
        self.credentials = botocore.credentials.Credentials(access, secret)

    def fields(self, target, body, content_type="application/x-amz-json-1.1", name=None, region=None):
        name = name or ("logs" if target.startswith("Logs") else "sagemaker")
        request = botocore.awsrequest.AWSRequest(
            method="POST", url=self.service.endpoint + "/", data=body,
            headers={"X-Amz-Target": target, "Content-Type": content_type})
        botocore.auth.SigV4Auth(self.credentials, name, region or self.service.region).add_auth(request)
        return {"Host": self.service.endpoint.removeprefix("http://"), **dict(request.headers.items())}

    def send(self, fields, body, length=None, also=()):
        lines = [*fields.items(), *also, ("Content-Length", length or len(body)), ("Connection", "close")]
        head = "POST / HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines) + "\r\n"
        answer = exchange(self.service, head.encode() + body)
        return status_of(answer), answer.partition("\r\n\r\n")[2]

    def __call__(self, target, body, **kwargs):
        status, text = self.send(self.fields(target, body, **kwargs), body)
        return status, json.loads(text).get("__type", "")


@pytest.fixture(scope="module")
def api(shared_service):
    return Api(shared_service)


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
                                  b"[" + b"0," * 300_000 + b"0]", b'{"NameContains":"\xff\xfe"}', b'{"NameContains":"\xc0\xaf"}',
                                  b'{"NameContains":"a\0b"}', b'"text"', b"\0", b"{} {}", b'{"MaxResults":1e999}'],
                         ids=range(11))
def test_json_that_is_too_deep_too_large_or_no_text_is_a_serialization_exception(api, body):
    status, code = api("SageMaker.ListTrainingJobs", body)
    assert (status, code) in ((400, "SerializationException"), (400, "ValidationException"))


@pytest.mark.parametrize("content_type", ["application/xml", "text/plain", "", "application/json; charset=utf-16"])
def test_another_content_type_does_not_change_what_is_read(api, content_type):
    assert api("SageMaker.ListTrainingJobs", b"{", content_type=content_type) == (400, "SerializationException")


def test_a_body_over_the_limit_is_refused_by_its_length_alone(shared_service, api):
    with connect(shared_service) as connection:
        connection.sendall((DOORS["api"] + f"Content-Length: {17 * MIB}\r\n\r\n").encode())  # And nothing of it.
        answer = connection.recv(1 << 16).decode()
    assert status_of(answer) == 413 and "Connection: close" in answer
    document = f"POST /bucket?delete HTTP/1.1\r\nHost: h\r\nContent-Length: {1 << 40}\r\n\r\n"
    with connect(shared_service) as connection:
        connection.sendall(document.encode())
        assert "<Code>AccessDenied</Code>" in connection.recv(1 << 16).decode()


def test_a_document_over_the_limit_is_refused(shared_service, s3):
    raw = Raw(shared_service)
    body = b"<Delete>" + b" " * (3 * MIB) + b"<Object><Key>k</Key></Object></Delete>"
    status, _, answer = raw("POST", "/bucket?delete=", body)
    assert status == 400 and re.search(b"<Code>(MalformedXML|EntityTooLarge|MaxMessageLengthExceeded)</Code>", answer), answer
    deep = b"<Delete>" + b"<a>" * 100_000
    status, _, answer = raw("POST", "/bucket?delete=", deep)
    assert status == 400 and b"<Code>MalformedXML</Code>" in answer


# Names.

@pytest.mark.parametrize("name", ["..", "../../etc", "%2e%2e/x", "/etc/passwd", "a/b", "a\0b", "a b", "é"])
def test_a_name_that_is_a_path_names_no_job_and_no_channel(shared_service, api, name):
    request = shared_service.request(name, "true")
    assert api("SageMaker.CreateTrainingJob", json.dumps(request).encode()) == (400, "ValidationException")
    channel = shared_service.request("named-well", "true", InputDataConfig=[{
        "ChannelName": name, "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/in"}}}])
    assert api("SageMaker.CreateTrainingJob", json.dumps(channel).encode()) == (400, "ValidationException")
    for operation in ("Describe", "Stop"):
        body = json.dumps({"TrainingJobName": name}).encode()
        assert api(f"SageMaker.{operation}TrainingJob", body) == (400, "ValidationException")
    body = json.dumps({"logGroupName": "/aws/sagemaker/TrainingJobs", "logStreamName": f"{name}/algo-1-1"}).encode()
    assert api("Logs_20140328.GetLogEvents", body)[0] == 400


@pytest.mark.parametrize("key", ["..", "../x", "a/../../x", "/etc/passwd", ".", "./.", "a\0b", "%2e%2e/x", ".gruca/x", "\r\n",
                                 "a/" * 200 + "x", "x.d", "x.more", "~", "\\..\\x"])
def test_a_key_that_looks_like_a_path_is_a_key_like_others(shared_service, s3, key):
    """Through the wire as boto3 would not send it: every byte that a proxy could take for a path."""
    raw = Raw(shared_service)
    path = "/bucket/" + quote(key)
    assert raw("PUT", path, key.encode())[0] == 200
    status, _, body = raw("GET", path)
    assert (status, body) == (200, key.encode())
    assert raw("DELETE", path)[0] == 204
    assert not (shared_service.data / "x").exists() and not (shared_service.data.parent / "x").exists()


@pytest.mark.parametrize("path", ["/../bucket/k", "/%2e%2e/k", "/%2e/k", "//k", "/%2Fetc/passwd", "/.gruca/parts/j/algo-1/model.tar",
                                  "/%2egruca/x", "/bucket%2Fdir/k", "/bucket%00/k", "/.uploads/x"])
def test_a_path_that_names_no_bucket_reaches_nothing(shared_service, s3, path):
    shared_service.put("a part", "s3://.gruca/parts/j/algo-1/model.tar")
    s3.put_object(Bucket="bucket", Key="dir/k", Body=b"x")
    raw = Raw(shared_service)
    for method in ("GET", "PUT", "DELETE"):
        status, _, body = raw(method, path, b"forged" if method == "PUT" else b"")
        assert 400 <= status < 500, (method, body)
    listed = path.rsplit("/", 1)[0]
    if listed.strip("/"):
        assert raw("GET", listed + "?list-type=2")[0] >= 400
    if path != "/bucket%2Fdir/k":  # Of a source to copy the whole is decoded: this one means bucket/dir/k.
        copied = raw("PUT", "/bucket/stolen", headers={"x-amz-copy-source": path})
        assert 400 <= copied[0] < 500, copied
    assert [bucket["Name"] for bucket in s3.list_buckets()["Buckets"] if bucket["Name"].startswith(".")] == []
    assert shared_service.fetch("s3://.gruca/parts/j/algo-1/model.tar") == b"a part"


@pytest.mark.parametrize("path", ["/bucket/%ff", "/bucket/%zz", "/bucket/%", "/%c3%28/k", "/bucket/k?prefix=%ff%", "/bucket?list-type=2&prefix=%ff"])
def test_a_key_that_is_no_utf8_is_refused(shared_service, s3, path):
    assert Raw(shared_service)("GET", path)[0] in (400, 403)  # 403: of such a query there is no canonical form.


# Signatures.

def test_a_signature_for_another_service_day_or_region_opens_nothing(shared_service, api, s3):
    body = b"{}"
    assert api("SageMaker.ListTrainingJobs", body, name="s3")[0] in (400, 403)
    assert api("SageMaker.ListTrainingJobs", body, name="logs")[0] in (400, 403)
    fields = api.fields("SageMaker.ListTrainingJobs", body)
    today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d")
    for old, new in ((today, "20200101"), ("aws4_request", "aws5_request"), ("SignedHeaders=", "SignedHeaders=authorization;"),
                     ("SignedHeaders=content-type;", "SignedHeaders="), ("Signature=", "Signature=0"), ("Credential=", "Credential=x/")):
        forged = {**fields, "Authorization": fields["Authorization"].replace(old, new)}
        assert forged != fields
        assert api.send(forged, body)[0] in (400, 403), (old, new)
    for name in ("X-Amz-Date", "Authorization"):
        assert api.send({**fields, name: ""}, body)[0] in (400, 403)
        assert api.send({**fields, name: "x" * 10_000}, body)[0] in (400, 403)


def test_a_header_that_comes_twice_is_not_the_one_that_was_signed(shared_service, api):
    body = b"{}"
    fields = api.fields("SageMaker.ListTrainingJobs", body)
    assert api.send(fields, body)[0] == 200
    for name, value in (("X-Amz-Target", "SageMaker.DeleteTags"), ("X-Amz-Date", fields["X-Amz-Date"]),
                        ("Authorization", "AWS4-HMAC-SHA256 x"), ("Host", "elsewhere"), ("X-Amz-Security-Token", "x"),
                        ("Content-Type", "text/plain")):
        assert api.send(fields, body, also=((name, value),))[0] in (400, 403), name
    assert api.send(fields, b'{ }')[0] in (400, 403)  # Another body.


def test_an_object_request_that_does_not_say_its_payload_is_told_so_as_s3_does(shared_service, s3):
    raw = Raw(shared_service)
    request = botocore.awsrequest.AWSRequest(method="GET", url=f"http://{raw.host}/bucket/k")
    botocore.auth.SigV4Auth(raw.credentials, "s3", raw.region).add_auth(request)  # As other services are signed for.
    connection = http.client.HTTPConnection(raw.host, timeout=PATIENCE)
    connection.request("GET", "/bucket/k", headers=dict(request.headers.items()))
    answer = connection.getresponse()
    status, body = answer.status, answer.read()
    connection.close()
    assert status == 400 and b"<Code>InvalidRequest</Code>" in body
    assert b"Missing required header for this request: x-amz-content-sha256" in body


# What is looked for in logs.

def test_an_expression_that_backtracks_for_ever_elsewhere_is_answered(shared_service, api):
    shared_service.create("long-line", "head -c 1000000 /dev/zero | tr '\\0' a; echo b")
    assert shared_service.wait("long-line")["TrainingJobStatus"] == "Completed"
    logs = shared_service.client("logs")
    group = "/aws/sagemaker/TrainingJobs"
    assert logs.filter_log_events(logGroupName=group, filterPattern="%a+a+a+a+a+$%")["events"] == []
    found = logs.filter_log_events(logGroupName=group, logStreamNamePrefix="long-line/", filterPattern="%a+a+a+b$%")["events"]
    assert len(found) == 1
    for pattern in ("%(a+)+$%", "%a{1000}{1000}%", "%" + "[a-z]*" * 2000 + "%", '"' * 999, "%" * 999):
        with pytest.raises(botocore.exceptions.ClientError) as caught:
            logs.filter_log_events(logGroupName=group, filterPattern=pattern)
        assert caught.value.response["Error"]["Code"] in ("InvalidParameterException", "ValidationException"), pattern[:20]
