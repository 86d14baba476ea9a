"""What of a program may change: evolve blocks, and the files that have some.

A block is what stands between two comment lines of their own:

    # EVOLVE-BLOCK-START
    ...
    # EVOLVE-BLOCK-END

The comment may begin with any of `_COMMENTS`. What lies outside the blocks is *fixed*: it is the
same in all programs of a run. A program without any block may change everywhere. In one of several
files, a file without a block is fixed where another one has some. Files are neither added nor
removed.

This says what a search changes. It is no wall: what is written in a block may still tamper with
what lies outside when the program runs.

Does not cover asking for changes (``engine.prompts``), or refusing a child that changed what is
fixed (``engine.pipeline.reader``).
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.core.bundle import bundle_of, files_of, is_bundle, section, sections_of

PLAIN = ""
"""The name of the only file of a program that is no bundle."""

_COMMENTS = ("#", "//", "--", "/*", ";", "%", "!", "(*", "<!--")
_WORD = "EVOLVE-BLOCK-"
_MARK = re.compile(
    rf"^[ \t]*(?:{'|'.join(map(re.escape, _COMMENTS))})[^\n]*?"
    rf"\b{_WORD}(START|END)\b[^\n]*(?:\n|\Z)",
    re.MULTILINE,
)
_KEPT = 1024
_LEFT_OUT = "(block {number})\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A file of a program.

    Attributes:
        name: its own; `PLAIN` where the program is no bundle.
        pieces: its text, cut: fixed, open, fixed and so on, with a fixed piece at either end. A
            mark belongs to the fixed piece. A file that is open as a whole has two empty ones.
    """

    name: str
    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole of it."""
        return "".join(self.pieces)

    @property
    def is_open(self) -> bool:
        """Whether anything in it may change."""
        return len(self.pieces) > 1

    @property
    def has_blocks(self) -> bool:
        """Whether a part of it is fixed and another one open."""
        return self.is_open and any(self.pieces[::2])

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Where its open pieces start and end, in characters of its text."""
        ends = [0]
        for piece in self.pieces:
            ends.append(ends[-1] + len(piece))
        return tuple(zip(ends[1:-1:2], ends[2::2], strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class Outline:
    """A program, and what of it may change.

    Attributes:
        files: in the order of their names, each as `File` has it.
    """

    files: tuple[File, ...]

    @property
    def is_bundle(self) -> bool:
        """Whether it is a program of named files."""
        return self.files[0].name != PLAIN

    @property
    def is_plain(self) -> bool:
        """Whether it is one file that may change everywhere, and whose name is not told."""
        return not self.is_bundle and not self.files[0].has_blocks

    @property
    def open_files(self) -> tuple[File, ...]:
        """The files in which something may change."""
        return tuple(file for file in self.files if file.is_open)

    @property
    def text(self) -> str:
        """The program."""
        if not self.is_bundle:
            return self.files[0].text
        return bundle_of({file.name: file.text for file in self.files})

    @property
    def fixed(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What may not change: of each file its name and its fixed pieces."""
        return tuple((file.name, file.pieces[::2]) for file in self.files)

    def offset(self, file: File) -> int | None:
        """Return where a file's text starts in the program; None if a line of it is escaped."""
        if not self.is_bundle:
            return 0
        sections = [section(each.name, each.text) for each in self.files]
        number = self.files.index(file)
        heading = sections[number].find("\n") + 1
        exact = sections[number].removesuffix("\n")[heading:] == file.text.removesuffix("\n")
        return sum(map(len, sections[:number])) + heading if exact else None

    def with_texts(self, texts: Mapping[str, str]) -> "Outline":
        """Return the program with what ``texts`` has for the open pieces of some files.

        Raises:
            ValueError: a text is for a file that has nothing open, or has not as many blocks.
        """
        open_ones = {file.name for file in self.open_files}
        if strangers := sorted(set(texts) - open_ones):
            raise ValueError(f"nothing in {strangers[0]!r} may change")
        return replace(self, files=tuple(_changed(file, texts) for file in self.files))


@functools.lru_cache(maxsize=_KEPT)
def outline(program: str) -> Outline:
    """Return what of a program may change.

    Raises:
        ValueError: the program is no bundle although it begins as one, or a mark is missing; the
            message has the file's name, if there is one, and the line.
    """
    texts = files_of(program) if is_bundle(program) else {PLAIN: program}
    cut = {name: _pieces(name, text) for name, text in texts.items()}
    if all(len(pieces) == 1 for pieces in cut.values()):
        cut = {name: ("", text, "") for name, text in texts.items()}
    return Outline(files=tuple(File(name=name, pieces=pieces) for name, pieces in cut.items()))


def keeps_fixed(program: str, *, parent: str) -> bool:
    """Whether a program differs from another one in what may change, and nowhere else."""
    if not any(_WORD in text or is_bundle(text) for text in (program, parent)):
        return True  # most are, and there are many
    try:
        return outline(program).fixed == outline(parent).fixed
    except ValueError:
        return False


def merged(parent: str, answer: str) -> str | None:
    """Return the parent with the changes that an answer holds.

    For a parent that is one open file, that is the answer itself. Otherwise an answer has the files
    that it changes, each behind its line ``#:file NAME``, which a program of one open file can do
    without; and of a file with blocks, all its blocks with their marks. What else it says of a file
    with blocks is left out.

    Returns:
        The program; None where the answer holds none.
    """
    whole = outline(parent)
    if whole.is_plain:
        return answer
    texts = _texts(answer, whole)
    try:
        return None if texts is None else whole.with_texts(texts).text
    except ValueError:
        return None


def open_text(program: str) -> str:
    """Return what may change of a program, in the form that `merged` reads."""
    whole = outline(program)
    return "".join(
        section(file.name, _shown(file)) if whole.is_bundle else _shown(file)
        for file in whole.open_files
    )


def fixed_text(program: str) -> str:
    """Return what may not change of a program, its blocks left out; empty where there is nothing.

    A file stands behind its line ``#:file NAME``, unless it is the only one and has no name.
    """
    whole = outline(program)
    texts = []
    for file in whole.files:
        if any(file.pieces[::2]):
            left_out = [_LEFT_OUT.format(number=i // 2 + 1) for i in range(1, len(file.pieces), 2)]
            pieces = list(file.pieces)
            pieces[1::2] = left_out
            text = "".join(pieces)
            texts.append(section(file.name, text) if whole.is_bundle else text)
    return "".join(texts)


def _pieces(name: str, text: str) -> tuple[str, ...]:
    pieces, end, is_open = [], 0, False
    for mark in _MARK.finditer(text):
        begins = mark[1] == "START"
        if begins is is_open:
            other = "in another block" if begins else "without a start"
            raise ValueError(f"{_at(name, text, mark.start())}: {_WORD}{mark[1]} {other}")
        cut = mark.end() if begins else mark.start()
        pieces.append(text[end:cut])
        end, is_open = cut, begins
    if is_open:
        raise ValueError(f"{_at(name, text, end - 1)}: {_WORD}START without an end")
    return (*pieces, text[end:])


def _at(name: str, text: str, position: int) -> str:
    line = f"line {text.count(chr(10), 0, position) + 1}"
    return f"{name} {line}" if name else line


def _texts(answer: str, whole: Outline) -> dict[str, str] | None:
    """Return what an answer has for each file that it names."""
    before, sections = sections_of(answer) if whole.is_bundle else (answer, [])
    if not sections and len(whole.open_files) == 1:
        return {whole.open_files[0].name: before}
    texts = dict(sections)
    if not texts or len(texts) < len(sections) or before.strip():
        return None
    return texts


def _changed(file: File, texts: Mapping[str, str]) -> File:
    if file.name not in texts:
        return file
    text = texts[file.name]
    if not file.has_blocks:
        return replace(file, pieces=("", text.strip("\n") + "\n", ""))
    given = _pieces(file.name, text)
    if len(given) != len(file.pieces):
        raise ValueError(f"{file.name!r} has {len(file.pieces) // 2} blocks")
    pieces = list(file.pieces)
    pieces[1::2] = given[1::2]
    return replace(file, pieces=tuple(pieces))


def _shown(file: File) -> str:
    """Return the open pieces of a file with their marks, and nothing else."""
    if not file.has_blocks:
        return file.text if file.text.endswith("\n") else f"{file.text}\n"
    shown = []
    for index in range(1, len(file.pieces), 2):
        start = file.pieces[index - 1].rstrip("\n").rpartition("\n")[2]
        end = file.pieces[index + 1].partition("\n")[0]
        shown.append(f"{start}\n{file.pieces[index]}{end}\n")
    return "".join(shown)
