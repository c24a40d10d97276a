"""A file system whose one file can be opened and never be read: whoever reads it hangs in the kernel and cannot
even be killed, until end(). Speaks the kernel's FUSE protocol on /dev/fuse, so it needs no library."""

import ctypes
import errno
import os
import select
import struct
import threading

LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 26, 36, 42
NO_REPLY = {FORGET, READ, INTERRUPT, BATCH_FORGET}  # Of READ because that is the point.
FILE, DIRECT_IO = 2, 1
MNT_DETACH = 2

libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def attributes(node):
    mode, size = (0o100444, 4096) if node == FILE else (0o040555, 0)
    return struct.pack("<6Q10I", node, size, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body):
    """The reply's body, or an errno."""
    if opcode == INIT:
        return struct.pack("<4I2H2I2H7I", 7, 31, 0, 0, 0, 0, 1 << 17, 1, 0, 0, *[0] * 7)
    if opcode == LOOKUP:
        found = body.rstrip(b"\0") == b"file"
        return struct.pack("<4Q2I", FILE, 0, 3600, 3600, 0, 0) + attributes(FILE) if found else errno.ENOENT
    if opcode == GETATTR:
        return struct.pack("<Q2I", 3600, 0, 0) + attributes(node)
    if opcode == OPEN:
        return struct.pack("<Q2I", 1, DIRECT_IO, 0)
    return errno.ENOSYS


class StuckFs:
    def __init__(self, directory):
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.file = directory / "file"
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        checked(libc.mount(b"stuck", str(directory).encode(), b"fuse", 6, options))
        self.wake = os.pipe()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            ready, _, _ = select.select([self.fd, self.wake[0]], [], [])
            if self.wake[0] in ready:
                return
            request = os.read(self.fd, 1 << 18)
            size, opcode, unique, node = struct.unpack_from("<2I2Q", request)
            if opcode in NO_REPLY:
                continue
            reply = answer(opcode, node, request[40:size])
            failed = isinstance(reply, int)
            body = b"" if failed else reply
            os.write(self.fd, struct.pack("<IiQ", 16 + len(body), -reply if failed else 0, unique) + body)

    def end(self):
        """Every read fails and every reader is free to die."""
        if self.fd < 0:
            return
        os.write(self.wake[1], b"x")
        self.thread.join()
        os.close(self.fd)  # Nobody answers any more: the kernel gives up all that waits.
        self.fd = -1
        libc.umount2(str(self.directory).encode(), MNT_DETACH)
