"""A program of several files as one text, and back.

A program is a text everywhere in the engine. One of several files is a *bundle*: before each file a
line ``#:file NAME`` and its text, the files in the order of their names. Each set of files has
exactly one such text. A program that is one file under the main name is its own text.

    #:file search/moves.py
    def move(x): ...
    #:file solve.py
    from search.moves import move

A line of a file that looks like such a line has one ``#`` more in the bundle. A file that does not
end with a newline has a trailing `_UNENDED` in its ``#:file`` line.

Does not cover which files a problem has, or what in them may change: ``engine.problem``,
``engine.syntax.blocks``.
"""

import re
from collections.abc import Mapping

MAIN = "program.py"
"""The name of a program's only file, where its problem names none."""
MOST_FILES = 256
LONGEST_NAME = 200
"""Characters of a file's name with its folders."""

_OPENING = "#:file "
_UNENDED = " \\"  # no name holds a space
_HEADING = re.compile(r"^#:file ([^\n]*)\n", re.MULTILINE)
_MARKED = re.compile(r"^(#+):file ", re.MULTILINE)
_ESCAPED = re.compile(r"^#(#+:file )", re.MULTILINE)
_PART = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9_.+-]*", re.ASCII)


def is_bundle(text: str) -> bool:
    """Return whether a text is to be read as several files."""
    return text.startswith(_OPENING)


def bundle_of(files: Mapping[str, str], *, main: str = MAIN) -> str:
    """Return the one text that stands for ``files``.

    Args:
        files: the text of each by its name: relative, with ``/`` between folders.
        main: the name under which a single file needs no mark.

    Raises:
        ValueError: there is no file, or too many, or a name is not allowed.
    """
    _check(files)
    if [*files] == [main] and not is_bundle(files[main]):
        return files[main]
    return "".join(section(name, files[name]) for name in sorted(files))


def files_of(text: str, *, main: str = MAIN) -> dict[str, str]:
    """Return the files of a program, in the order of their names.

    Args:
        text: of the program.
        main: the name of the file, where the text is no bundle.

    Raises:
        ValueError: the text is a bundle that `bundle_of` does not write: a name is not allowed or
            stands twice, or the files are in another order.
    """
    if not is_bundle(text):
        _check({main: text})
        return {main: text}
    files: dict[str, str] = {}
    for name, content in sections_of(text)[1]:
        if name in files:
            raise ValueError(f"the program has two files {name!r}")
        files[name] = content
    if bundle_of(files, main=main) != text:
        raise ValueError("the program's files are not in the form that a bundle has")
    return files


def sections_of(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return what stands before the first ``#:file`` line, and the name and text behind each.

    Reads what people and models write too: nothing is checked.
    """
    before, *parts = _HEADING.split(text)
    found = []
    for heading, content in zip(parts[::2], parts[1::2], strict=True):
        unended = heading.endswith(_UNENDED) and content.endswith("\n")
        name = heading.removesuffix(_UNENDED).rstrip()
        found.append((name, _ESCAPED.sub(r"\1", content[:-1] if unended else content)))
    return before, found


def section(name: str, text: str) -> str:
    """Return a file as it stands in a bundle: its ``#:file`` line, and its text."""
    unended = bool(text) and not text.endswith("\n")
    escaped = _MARKED.sub(r"#\g<0>", text)
    return f"{_OPENING}{name}{_UNENDED if unended else ''}\n{escaped}" + ("\n" if unended else "")


def check_name(name: str) -> None:
    """Raise ValueError for a name that a program's file may not have.

    A name stays below the program's folder, and is the same on every system: parts of ASCII letters
    and digits and ``_ . + -``, with ``/`` between them, none of which begins with a dot or a dash.
    """
    if len(name) > LONGEST_NAME:
        raise ValueError(f"a file's name has {len(name)} characters; {LONGEST_NAME} are allowed")
    if not all(map(_PART.fullmatch, name.split("/"))):
        raise ValueError(
            f"{name!r} is no name of a program's file: give a relative one of letters, digits, "
            "_ . + - and /"
        )


def _check(files: Mapping[str, str]) -> None:
    if not 1 <= len(files) <= MOST_FILES:
        raise ValueError(f"a program has 1 to {MOST_FILES} files, not {len(files)}")
    for name in files:
        check_name(name)
        folders = name.split("/")[:-1]
        for depth in range(1, len(folders) + 1):
            if (folder := "/".join(folders[:depth])) in files:
                raise ValueError(f"{folder!r} is a file of the program and a folder of {name!r}")
