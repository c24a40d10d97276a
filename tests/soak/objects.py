"""A long object goes in and out through the S3 door, while the service takes little memory.

A point is one object of `GRUCA_SOAK_OBJECT_GB` (10, unless that says otherwise): put in parts by boto3's transfer
manager, got whole and in ranges, copied by `aws s3 cp`, and half of it put at once, which is the most that one put
may bring. What comes back is held against the SHA-256 of what went in, ETag and checksum against what they are by
definition, and the most memory that the service ever had (VmHWM) against where it began. Needs three times the
object's size of disk."""

import base64
import contextlib
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
import zlib

import boto3.s3.transfer
import botocore.config
import soak
from conftest import ROOT, running_service

MIB = 1 << 20
BYTES = int(float(os.environ.get("GRUCA_SOAK_OBJECT_GB", "10")) * 1e9)
PUT_BYTES_MAX = 5 << 30
PART_BYTES = 64 * MIB
PIECE_BYTES = 8 * MIB
GROWTH_MAX_KIB = 64 << 10
RANGES = 32
BUCKET = "soak-objects"


class Content:
    """Bytes that follow from a seed and a place, none like its neighbour, without keeping them."""

    def __init__(self, chance, size):
        self.block, self.size = chance.randbytes(PIECE_BYTES - 8), size

    def read(self, begin, count):
        parts, at, end = [], begin, min(begin + count, self.size)
        while at < end:
            number, skip = divmod(at, PIECE_BYTES)
            mark = number.to_bytes(8, "big")[skip:]
            begin_in_block = max(skip - 8, 0)
            piece = (mark + self.block[begin_in_block:begin_in_block + end - at - len(mark)])[:end - at]
            parts.append(piece)
            at += len(piece)
        return b"".join(parts)

    def pieces(self, size=None):
        size = self.size if size is None else size
        for begin in range(0, size, PIECE_BYTES):
            yield self.read(begin, min(PIECE_BYTES, size - begin))


class Stream:
    """A file that can be read and sought, of the first `size` bytes."""

    def __init__(self, content, size):
        self.content, self.size, self.at = content, size, 0

    def read(self, count=-1):
        count = self.size - self.at if count is None or count < 0 else min(count, self.size - self.at)
        data = self.content.read(self.at, count)
        self.at += len(data)
        return data

    def seek(self, offset, whence=0):
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def tell(self):
        return self.at

    def seekable(self):
        return True


def peak_kib(service):
    status = pathlib.Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


@contextlib.contextmanager
def rate(figures, name, size):
    begin = time.monotonic()
    yield
    figures[f"{name}_mb_per_s"] = size / 1e6 / (time.monotonic() - begin)


def composed_etag(content):
    md5s = [hashlib.md5(content.read(begin, PART_BYTES)).digest() for begin in range(0, content.size, PART_BYTES)]
    return f'"{hashlib.md5(b"".join(md5s)).hexdigest()}-{len(md5s)}"'


def digests(pieces):
    md5, sha256, crc = hashlib.md5(), hashlib.sha256(), 0
    for piece in pieces:
        md5.update(piece)
        sha256.update(piece)
        crc = zlib.crc32(piece, crc)
    return md5.hexdigest(), sha256.hexdigest(), base64.b64encode(crc.to_bytes(4, "big")).decode()


def sha256_of(body):
    whole = hashlib.sha256()
    for piece in body.iter_chunks(MIB):
        whole.update(piece)
    return whole.hexdigest()


def move(service, chance, home):
    s3 = service.client("s3", config=botocore.config.Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}))
    s3.create_bucket(Bucket=BUCKET)
    content, figures = Content(chance, BYTES), {}
    once = min(BYTES // 2, PUT_BYTES_MAX)
    _, sha256, crc32 = digests(content.pieces())
    md5_once, sha256_once, _ = digests(content.pieces(once))
    before = peak_kib(service)

    config = boto3.s3.transfer.TransferConfig(multipart_chunksize=PART_BYTES, max_concurrency=4)
    with rate(figures, "put_in_parts", BYTES):
        s3.upload_fileobj(Stream(content, BYTES), BUCKET, "parts", Config=config,
                          ExtraArgs={"ChecksumAlgorithm": "CRC32", "ChecksumType": "FULL_OBJECT"})
    head = s3.head_object(Bucket=BUCKET, Key="parts", ChecksumMode="ENABLED")
    assert (head["ContentLength"], head["ETag"]) == (BYTES, composed_etag(content)), head
    assert (head["ChecksumCRC32"], head["ChecksumType"]) == (crc32, "FULL_OBJECT"), head
    with rate(figures, "get", BYTES):
        assert sha256_of(s3.get_object(Bucket=BUCKET, Key="parts")["Body"]) == sha256
    with rate(figures, "ranges", RANGES * PART_BYTES):
        for _ in range(RANGES):
            begin = chance.randrange(BYTES - PART_BYTES)
            got = s3.get_object(Bucket=BUCKET, Key="parts", Range=f"bytes={begin}-{begin + PART_BYTES - 1}")
            assert got["ContentRange"] == f"bytes {begin}-{begin + PART_BYTES - 1}/{BYTES}"
            assert got["Body"].read() == content.read(begin, PART_BYTES)
    with rate(figures, "aws_s3_cp", BYTES):
        subprocess.run([ROOT / ".venv/bin/aws", "s3", "cp", "--quiet", f"s3://{BUCKET}/parts", home / "down"], env=service.env, check=True)
    with open(home / "down", "rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == sha256
    (home / "down").unlink()
    s3.delete_object(Bucket=BUCKET, Key="parts")
    with rate(figures, "put_at_once", once):
        assert s3.put_object(Bucket=BUCKET, Key="once", Body=Stream(content, once), ContentLength=once)["ETag"] == f'"{md5_once}"'
    assert sha256_of(s3.get_object(Bucket=BUCKET, Key="once")["Body"]) == sha256_once

    grown = peak_kib(service) - before
    figures["growth_mib"] = grown / 1024
    assert grown < GROWTH_MAX_KIB, f"the service grew by {grown} KiB"
    return f"{BYTES} bytes and {once} at once, as they were", figures


@contextlib.contextmanager
def series(home):
    room = shutil.disk_usage(home).free
    if room < 3 * BYTES:
        sys.exit(f"objects: {room} bytes are free at {home}, three times {BYTES} are needed; see GRUCA_SOAK_OBJECT_GB")

    def point(chance, home):
        try:
            with running_service(home) as service:
                return move(service, chance, home)
        finally:  # No evidence is worth so many bytes.
            for path in (*home.glob("down*"), home / "data/store", home / "data/uploads"):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)

    yield point


if __name__ == "__main__":
    soak.main(series, points=1)
