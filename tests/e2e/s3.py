"""What the tests of the service's store as S3 share: requests signed by hand, bodies in aws-chunked, and a front
that speaks TLS, because SDKs send checksums in trailers only over https."""

import base64
import contextlib
import hashlib
import http.client
import itertools
import socket
import ssl
import subprocess
import threading
import urllib.parse
import zlib

import botocore.auth
import botocore.awsrequest
import botocore.config
import botocore.credentials
import botocore.exceptions
import pytest

NUMBERS = itertools.count(1)


def client(service, **kwargs):
    """boto3 as it comes, but for retries: a test wants to see the first answer."""
    config = kwargs.pop("config", {})
    options = dict(retries={"total_max_attempts": 1}, read_timeout=60, s3={"addressing_style": "path"})
    options.update(config)
    return service.client("s3", config=botocore.config.Config(**options), **kwargs)


def new_bucket(s3):
    name = f"bucket-{next(NUMBERS)}"
    s3.create_bucket(Bucket=name)
    return name


@contextlib.contextmanager
def refused(status, code):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        yield caught
    error = caught.value.response
    assert (error["ResponseMetadata"]["HTTPStatusCode"], error["Error"]["Code"]) == (status, code), error


def fill(s3, bucket, keys):
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())


def crc32(data):
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def quote(key):
    return urllib.parse.quote(key, safe="/~")


class Raw:
    """One request at a time, as the test writes it. `sha` stands in X-Amz-Content-Sha256."""

    def __init__(self, service):
        access, secret = service.keys
        self.credentials = botocore.credentials.Credentials(access, secret)
        self.host = service.endpoint.removeprefix("http://")
        self.region = service.region

    def signed(self, method, path, headers=None, sha="UNSIGNED-PAYLOAD"):
        request = botocore.awsrequest.AWSRequest(
            method=method, url=f"http://{self.host}{path}", headers={"x-amz-content-sha256": sha, **(headers or {})})
        request.context["payload_signing_enabled"] = True

        class Auth(botocore.auth.S3SigV4Auth):
            def payload(self, _):
                return sha

            def _modify_request_before_signing(self, request):
                super()._modify_request_before_signing(request)
                del request.headers["x-amz-content-sha256"]
                request.headers["x-amz-content-sha256"] = sha

        Auth(self.credentials, "s3", self.region).add_auth(request)
        return dict(request.headers.items())

    def __call__(self, method, path, body=b"", headers=None, sha="UNSIGNED-PAYLOAD", unsigned=None):
        fields = {**self.signed(method, path, headers, sha), **(unsigned or {})}
        connection = http.client.HTTPConnection(self.host, timeout=30)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            fields.setdefault("Content-Length", str(len(body)))
            for name, value in fields.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, dict((k.lower(), v) for k, v in answer.getheaders()), answer.read()
        finally:
            connection.close()


def aws_chunked(data, trailers, piece=65536):
    out = bytearray()
    for at in range(0, len(data), piece):
        chunk = data[at:at + piece]
        out += f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n"
    out += b"0\r\n"
    for name, value in trailers.items():
        out += f"{name}:{value}\r\n".encode()
    return bytes(out + b"\r\n")


def chunked_headers(data, trailer="x-amz-checksum-crc32"):
    return {"content-encoding": "aws-chunked", "x-amz-trailer": trailer, "x-amz-decoded-content-length": str(len(data))}


CHUNKED = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class TlsFront:
    """Takes TLS off and hands on bytes, as a reverse proxy in front of the service would."""

    def __init__(self, port, directory):
        self.certificate, key = directory / "front.pem", directory / "front.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", self.certificate],
                       check=True, capture_output=True, timeout=60)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, key)
        self.port = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"https://localhost:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain):
        with contextlib.suppress(OSError), self.context.wrap_socket(plain, server_side=True) as front, \
                socket.create_connection(("127.0.0.1", self.port)) as back:
            threading.Thread(target=self._copy, args=(back, front), daemon=True).start()
            self._copy(front, back)

    @staticmethod
    def _copy(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.close()
