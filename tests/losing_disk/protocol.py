"""Serves a file system in memory to the kernel, and notes what is done to it.

    python -m tests.losing_disk.protocol MOUNTPOINT JOURNAL [FOLDER]

It speaks the protocol of /dev/fuse itself (linux/fuse.h, version 7.31), so no library is needed: the mount is made by
the system's own call, or where that is not allowed by `fusermount3`. What is in FOLDER is there from the beginning.
When it is unmounted, the journal is written to a file.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pickle
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.losing_disk.journal import ROOT, TOLD, Journal, Length, Names, Sync, Told, Write

_IN = struct.Struct("<IIQQIIIHH")
_OUT = struct.Struct("<IiQ")
_INIT_OUT = struct.Struct("<IIIIHHIIHHI28x")
_ATTR = struct.Struct("<QQQQQQIIIIIIIIII")
_ENTRY = struct.Struct("<QQQQII")
_ATTR_OUT = struct.Struct("<QII")
_OPEN_OUT = struct.Struct("<QIi")
_DIRENT = struct.Struct("<QQII")
_VERSION = (7, 31)
_BIG_WRITES, _MAX_PAGES = 1 << 5, 1 << 22
_MOST_WRITTEN = 1 << 20
_SET_MODE, _SET_SIZE = 1 << 0, 1 << 3
# The kernel alone changes what is here, so it may keep what it knows.
_VALID_S = 3600
_NOSUID_NODEV = 2 | 4
_DETACH = 2


class Refused(Exception):
    """The error number that a call gets."""

    def __init__(self, number: int) -> None:
        super().__init__(os.strerror(number))
        self.number = number


@dataclass
class Node:
    """A file or folder."""

    number: int
    mode: int
    content: bytearray = field(default_factory=bytearray)
    names: dict[str, int] = field(default_factory=dict[str, int])
    links: int = 0
    path: str = ""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    def attributes(self) -> bytes:
        size = len(self.content)
        links = 2 if self.is_folder else self.links
        owner = os.getuid(), os.getgid()
        return _ATTR.pack(
            self.number, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, self.mode, links, *owner, 0, 4096, 0
        )

    def entry(self) -> bytes:
        return _ENTRY.pack(self.number, 0, _VALID_S, _VALID_S, 0, 0) + self.attributes()


class FileSystem:
    """Files and folders in memory. Each method answers one kind of request: its body begins after the header."""

    def __init__(self, folder: Path | None) -> None:
        self.journal = Journal()
        self._nodes = {ROOT: Node(ROOT, stat.S_IFDIR | 0o755)}
        self._told = self._make(stat.S_IFREG | 0o600)
        self._told.links = 1
        if folder is not None:
            self._take(folder, ROOT)
        self.journal.begun = len(self.journal.events)
        self._listings: dict[int, list[tuple[str, int]]] = {}
        self._answers: dict[int, Callable[[Node, bytes], bytes]] = {
            1: self._lookup,
            3: lambda node, _: _ATTR_OUT.pack(_VALID_S, 0, 0) + node.attributes(),
            4: self._set_attributes,
            9: self._make_folder,
            10: self._unlink,
            11: self._remove_folder,
            12: lambda node, body: self._rename(node, body, 8),
            13: self._link,
            14: self._open,
            15: self._read,
            16: self._write,
            17: lambda _node, _body: struct.pack("<5Q4I24x", *(1 << 20,) * 5, 4096, 255, 4096, 0),
            18: lambda _node, _body: b"",
            20: self._sync,
            26: self._begin,
            27: self._open_folder,
            28: self._list,
            29: self._close_folder,
            30: self._sync,
            35: self._create,
            43: self._allocate,
            45: lambda node, body: self._rename(node, body, 16),
        }

    def answer(self, request: bytes) -> bytes | None:
        """Answer one request of the kernel; None where it wants no answer."""
        _, code, unique, number, *_ = _IN.unpack_from(request)
        if code in (2, 36, 42):
            return None
        try:
            work = self._answers.get(code)
            if work is None:
                raise Refused(errno.ENOSYS)
            done = work(self._nodes.get(number) or self._nodes[ROOT], request[_IN.size :])
        except Refused as refused:
            return _OUT.pack(_OUT.size, -refused.number, unique)
        return _OUT.pack(_OUT.size + len(done), 0, unique) + done

    def _make(self, mode: int) -> Node:
        node = Node(len(self._nodes) + 1, mode)
        self._nodes[node.number] = node
        if node.is_folder:
            self.journal.folders.add(node.number)
        return node

    def _take(self, folder: Path, number: int) -> None:
        for path in sorted(folder.iterdir()):
            node = self._make(path.stat().st_mode)
            self._name(self._nodes[number], path.name, node)
            if node.is_folder:
                self._take(path, node.number)
            else:
                node.content[:] = path.read_bytes()
                self.journal.events.append(Write(node.number, 0, bytes(node.content)))

    def _name(self, folder: Node, name: str, node: Node, removed: tuple[tuple[int, str, int], ...] = ()) -> None:
        before = self._nodes.get(folder.names.get(name, 0))
        if before is not None:
            before.links -= 1
        folder.names[name] = node.number
        node.links += 1
        node.path = f"{folder.path}/{name}".lstrip("/")
        self.journal.events.append(Names(folder.number, removed, ((folder.number, name, node.number),)))

    def _child(self, folder: Node, name: str) -> Node:
        if folder.number == ROOT and name == TOLD:
            return self._told
        if name not in folder.names:
            raise Refused(errno.ENOENT)
        return self._nodes[folder.names[name]]

    def _begin(self, _node: Node, body: bytes) -> bytes:
        readahead = struct.unpack_from("<III", body)[2]
        flags = _BIG_WRITES | _MAX_PAGES
        return _INIT_OUT.pack(*_VERSION, readahead, flags, 12, 9, _MOST_WRITTEN, 1, _MOST_WRITTEN // 4096, 0, 0)

    def _lookup(self, node: Node, body: bytes) -> bytes:
        return self._child(node, _text(body)).entry()

    def _set_attributes(self, node: Node, body: bytes) -> bytes:
        valid, size, mode = *struct.unpack_from("<I12xQ", body)[:2], struct.unpack_from("<68xI", body)[0]
        if valid & _SET_MODE:
            node.mode = stat.S_IFMT(node.mode) | stat.S_IMODE(mode)
        if valid & _SET_SIZE and node is not self._told:
            self._set_length(node, size)
        return _ATTR_OUT.pack(_VALID_S, 0, 0) + node.attributes()

    def _set_length(self, node: Node, length: int) -> None:
        del node.content[length:]
        node.content.extend(bytes(length - len(node.content)))
        self.journal.events.append(Length(node.number, length))

    def _make_folder(self, node: Node, body: bytes) -> bytes:
        mode, mask = struct.unpack_from("<II", body)
        made = self._make(stat.S_IFDIR | (mode & ~mask & 0o7777))
        self._name(node, _text(body[8:]), made)
        return made.entry()

    def _create(self, node: Node, body: bytes) -> bytes:
        mode, mask = struct.unpack_from("<4xII", body)
        made = self._make(stat.S_IFREG | (mode & ~mask & 0o7777))
        self._name(node, _text(body[16:]), made)
        return made.entry() + _OPEN_OUT.pack(0, 0, 0)

    def _unlink(self, node: Node, body: bytes) -> bytes:
        name = _text(body)
        gone = self._child(node, name)
        del node.names[name]
        gone.links -= 1
        self.journal.events.append(Names(node.number, ((node.number, name, gone.number),), ()))
        return b""

    def _remove_folder(self, node: Node, body: bytes) -> bytes:
        if self._child(node, _text(body)).names:
            raise Refused(errno.ENOTEMPTY)
        return self._unlink(node, body)

    def _rename(self, node: Node, body: bytes, skipped: int) -> bytes:
        # The kernel itself refuses to replace where that is not wanted.
        to = self._nodes[struct.unpack_from("<Q", body)[0]]
        old, new, _ = body[skipped:].split(b"\0", 2)
        moved = self._child(node, os.fsdecode(old))
        del node.names[os.fsdecode(old)]
        moved.links -= 1
        self._name(to, os.fsdecode(new), moved, ((node.number, os.fsdecode(old), moved.number),))
        return b""

    def _link(self, node: Node, body: bytes) -> bytes:
        linked = self._nodes[struct.unpack_from("<Q", body)[0]]
        self._name(node, _text(body[8:]), linked)
        return linked.entry()

    def _open(self, _node: Node, _body: bytes) -> bytes:
        return _OPEN_OUT.pack(0, 0, 0)

    def _read(self, node: Node, body: bytes) -> bytes:
        offset, size = struct.unpack_from("<8xQI", body)
        return bytes(node.content[offset : offset + size])

    def _write(self, node: Node, body: bytes) -> bytes:
        offset, size = struct.unpack_from("<8xQI", body)
        content = body[40 : 40 + size]
        if node is self._told:
            self.journal.events.append(Told(content))
        else:
            node.content.extend(bytes(max(0, offset - len(node.content))))
            node.content[offset : offset + size] = content
            self.journal.events.append(Write(node.number, offset, content))
        return struct.pack("<II", size, 0)

    def _allocate(self, node: Node, body: bytes) -> bytes:
        offset, length, mode = struct.unpack_from("<8xQQI", body)
        if mode != 0:
            raise Refused(errno.EOPNOTSUPP)
        if offset + length > len(node.content):
            self._set_length(node, offset + length)
        return b""

    def _sync(self, node: Node, _body: bytes) -> bytes:
        self.journal.events.append(Sync(node.number, f"{node.path}/" if node.is_folder else node.path))
        return b""

    def _open_folder(self, node: Node, _body: bytes) -> bytes:
        # As it is now: what is removed meanwhile does not move the others.
        handle = max(self._listings, default=0) + 1
        self._listings[handle] = [(".", node.number), ("..", ROOT), *node.names.items()]
        return _OPEN_OUT.pack(handle, 0, 0)

    def _close_folder(self, _node: Node, body: bytes) -> bytes:
        del self._listings[struct.unpack_from("<Q", body)[0]]
        return b""

    def _list(self, _node: Node, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        found = b""
        for place, (name, number) in enumerate(self._listings[handle][offset:], offset + 1):
            raw = os.fsencode(name)
            entry = _DIRENT.pack(number, place, len(raw), stat.S_IFMT(self._nodes[number].mode) >> 12) + raw
            entry += bytes(-len(entry) % 8)
            if len(found) + len(entry) > size:
                break
            found += entry
        return found


def _text(body: bytes) -> str:
    return os.fsdecode(body.split(b"\0", 1)[0])


def mount(at: Path) -> int:
    """Mount a file system, and return the descriptor that its requests come by.

    Raises:
        OSError: it may not be mounted.
    """
    descriptor = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={descriptor},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    if libc.mount(b"losing", os.fsencode(at), b"fuse", _NOSUID_NODEV, options.encode()) == 0:
        return descriptor
    os.close(descriptor)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        subprocess.run(
            ["fusermount3", "-o", "rw,nosuid,nodev", "--", os.fspath(at)],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "_FUSE_COMMFD": str(theirs.fileno())},
            check=True,
            capture_output=True,
        )
        return socket.recv_fds(ours, 1, 1)[1][0]


def unmount(at: Path) -> None:
    """Unmount it, at once for all that look for it, and for good when nobody has a file of it open."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(at), _DETACH) != 0:
        subprocess.run(["fusermount3", "-u", "-z", "--", os.fspath(at)], check=True, capture_output=True)


def main() -> None:
    """Run as a program."""
    at, journal = Path(sys.argv[1]), Path(sys.argv[2])
    system = FileSystem(Path(sys.argv[3]) if len(sys.argv) > 3 else None)
    descriptor = mount(at)
    print("mounted", flush=True)
    while True:
        try:
            request = os.read(descriptor, _MOST_WRITTEN + 4096)
        except OSError as error:
            if error.errno == errno.ENODEV:
                break
            if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                continue  # the caller went away
            raise
        answer = system.answer(request)
        if answer is not None:
            try:
                os.write(descriptor, answer)
            except OSError as error:
                if error.errno != errno.ENOENT:
                    raise
    journal.write_bytes(pickle.dumps(system.journal))


if __name__ == "__main__":
    main()
