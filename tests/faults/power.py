"""What a power cut leaves of a folder, from a record of what was done to it (``recorder.c``).

A file has what was synced, and a folder the names that it had when it was synced: all that POSIX
promises. Disks and file systems often keep more, so a cut may also be drawn that leaves some of the
rest: any of the pages that were written since, and the first of the names that changed since.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

_HEAD = struct.Struct("=QQQB")
_PAGE = 4096


def compiled(source: str, to: Path) -> Path:
    """Compile one of the C files beside this one to a library for LD_PRELOAD; skip without a cc."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = to / f"{source}.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*command, str(Path(__file__).with_name(f"{source}.c")), "-ldl"], check=True)
    return library


class Done(NamedTuple):
    """Something that was done: one record."""

    what: str
    inode: int
    offset: int
    data: bytes


def read_record(path: Path) -> list[Done]:
    """Return the records of a file."""
    content, at, found = path.read_bytes(), 0, []
    while at < len(content):
        inode, offset, size, what = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        found.append(Done(chr(what), inode, offset, content[at : at + size]))
        at += size
    return found


@dataclass
class File:
    """A file's bytes: those on disk, and those that programs see."""

    on_disk: bytes = b""
    now: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        _write(self.now, offset, data)
        for start in range(0, len(data), _PAGE):
            self.unsynced.append((offset + start, data[start : start + _PAGE]))

    def cut(self, size: int) -> None:
        _cut(self.now, size)
        self.unsynced.append((size, None))

    def sync(self) -> None:
        self.on_disk = bytes(self.now)
        self.unsynced.clear()

    def left(self, chance: random.Random | None) -> bytes:
        content = bytearray(self.on_disk)
        for offset, data in self.unsynced if chance is not None else ():
            if chance is not None and chance.random() < 0.5:
                _cut(content, offset) if data is None else _write(content, offset, data)
        return bytes(content)


@dataclass
class Folder:
    """A folder's names: those on disk, and those that programs see."""

    on_disk: dict[str, int] = field(default_factory=dict)
    now: dict[str, int] = field(default_factory=dict)


class Disk:
    """A folder and all below it, as far as its record was played back."""

    def __init__(self, root: Path, *, marks: Path) -> None:
        """Begin with an empty folder.

        Args:
            root: the folder, as it was recorded; it is there.
            marks: the file whose lines are `marks` and no part of the folder.
        """
        self._root = root
        self._marks = marks
        self._mark_inode = -1
        self._top = 0
        self._things: list[File | Folder] = [Folder()]
        self._by_inode = {root.stat().st_ino: 0}
        self._changes: list[list[tuple[int, str, int | None]]] = []  # of names, and not synced
        self.marks: list[str] = []

    def play(self, done: Done) -> None:
        """Take in what was done."""
        if done.what == "c" and done.data.decode() == str(self._marks):
            self._mark_inode = done.inode
        elif done.inode == self._mark_inode:
            self.marks += done.data.decode().splitlines()
        elif done.what == "c":
            self._link(done.data.decode(), self._new(File(), done.inode))
        elif done.what == "m":
            self._link(done.data.decode(), self._new(Folder(), done.inode))
        elif done.what == "u":
            parent, name = self._place(done.data.decode())
            self._change([(parent, name, None)])
        elif done.what == "r":
            old, new = (self._place(each.decode()) for each in done.data.split(b"\0"))
            self._change([(*old, None), (*new, self._folder(old[0]).now[old[1]])])
        elif done.inode in self._by_inode:
            self._play_content(self._by_inode[done.inode], done)

    def _play_content(self, number: int, done: Done) -> None:
        thing = self._things[number]
        if isinstance(thing, Folder):
            thing.on_disk = dict(thing.now)
            mine = [[each for each in change if each[0] != number] for change in self._changes]
            self._changes = [each for each in mine if each]
        elif done.what == "w":
            thing.write(done.offset, done.data)
        elif done.what == "t":
            thing.cut(done.offset)
        else:
            thing.sync()

    def write_now(self, to: Path) -> None:
        """Write what programs see."""
        self._write(self._top, to, {id(each): each.now for each in self._folders()}, None, now=True)

    def write_left(self, to: Path, chance: random.Random | None) -> None:
        """Write what a power cut leaves; with ``chance``, some of what it may leave besides."""
        names = {id(each): dict(each.on_disk) for each in self._folders()}
        kept = chance.randint(0, len(self._changes)) if chance is not None else 0
        for change in self._changes[:kept]:
            for parent, name, number in change:
                _name(names[id(self._folder(parent))], name, number)
        self._write(self._top, to, names, chance, now=False)

    def _write(
        self,
        number: int,
        to: Path,
        names: dict[int, dict[str, int]],
        chance: random.Random | None,
        *,
        now: bool,
    ) -> None:
        thing = self._things[number]
        if isinstance(thing, File):
            to.write_bytes(bytes(thing.now) if now else thing.left(chance))
            return
        to.mkdir(exist_ok=True)
        for name, inner in names[id(thing)].items():
            self._write(inner, to / name, names, chance, now=now)

    def _folders(self) -> Iterator[Folder]:
        return (each for each in self._things if isinstance(each, Folder))

    def _folder(self, number: int) -> Folder:
        found = self._things[number]
        assert isinstance(found, Folder)
        return found

    def _new(self, thing: File | Folder, inode: int) -> int:
        self._things.append(thing)
        self._by_inode[inode] = len(self._things) - 1
        return len(self._things) - 1

    def _place(self, path: str) -> tuple[int, str]:
        """Return the folder of a path, and the name there."""
        number = self._top
        *folders, name = Path(os.path.normpath(path)).relative_to(self._root).parts
        for each in folders:
            number = self._folder(number).now[each]
        return number, name

    def _link(self, path: str, number: int) -> None:
        parent, name = self._place(path)
        self._change([(parent, name, number)])

    def _change(self, change: list[tuple[int, str, int | None]]) -> None:
        for parent, name, number in change:
            _name(self._folder(parent).now, name, number)
        self._changes.append(change)


def _name(names: dict[str, int], name: str, number: int | None) -> None:
    if number is None:
        names.pop(name, None)
    else:
        names[name] = number


def _write(content: bytearray, offset: int, data: bytes) -> None:
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def _cut(content: bytearray, size: int) -> None:
    content.extend(bytes(max(0, size - len(content))))
    del content[size:]
