"""A reader of the documentation, who writes the files of a page and runs its commands.

Blocks of ``bash`` and ``python`` are run. A block whose first line is a comment with a path is that
file. Before another one may stand, as a comment of its own line that no reader sees,

    <!-- slow: why -->       it is run by ``make test-slow`` alone
    <!-- not run: why -->    it is never run; its options are checked all the same

On the first line of a page, either holds for all its blocks that have none of their own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from command import SECONDS
from sybil import Document, Example, Sybil
from sybil.parsers.markdown import CodeBlockParser

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")])
RUN = ("bash", "python")
"""Languages of the blocks that are run."""

_FILE = re.compile(r"(?:#|<!--) ((?:\w[\w-]*/)*\w+\.(?:py|yaml|md))(?: -->|:.*)?\n")
_MARK = re.compile(r"<!-- (slow|not run): (\S.*) -->")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block of code as it stands in a page.

    Attributes:
        language: what the page says that it is.
        text: of it.
        line: where it begins, from 1.
        mark: ``slow`` or ``not run``; empty for a block that is always run.
        file: the path that it is to be written to; None if it is to be run.
    """

    language: str
    text: str
    line: int
    mark: str
    file: str | None


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    """Yield the blocks of some languages in the order of the page."""
    document = parsed(page, *languages)
    whole = _MARK.match(document.text)
    for example in document.examples():
        language = document.text[example.start :].lstrip("`").partition("\n")[0]
        before = document.text[: example.start].rstrip().splitlines()
        mark = _MARK.fullmatch(before[-1] if before else "") or whole
        path = _FILE.match(example.parsed)
        yield Block(
            language=language,
            text=example.parsed,
            line=example.line,
            mark="" if mark is None else mark[1],
            file=None if path is None else path[1],
        )


def parsed(page: Path, *languages: str) -> Document:
    """Return a page in which the blocks of some languages are found."""

    def nothing(example: Example) -> None:
        """What is found is evaluated by `Reader`."""

    return Sybil([CodeBlockParser(each, nothing) for each in languages]).parse(page)


class Reader:
    """Does in a folder what pages say."""

    def __init__(self, folder: Path) -> None:
        """Begin in an empty folder."""
        self.folder = folder
        self.printed: list[str] = []
        self.written: list[str] = []
        self._scratch = folder.parent / "scratch"
        for each in (folder, self._scratch):
            each.mkdir(exist_ok=True)

    def follow(self, page: Path, *, marks: tuple[str, ...] = ("",)) -> None:
        """Do what a page says, as far as its blocks have one of some marks.

        Blocks of Python are one script, of which each begins with what those before have left.
        """
        script = ""
        for block in blocks(page, *RUN, "yaml", "markdown"):
            if block.file is not None:
                self._write(block)
            elif block.mark in marks and block.language == "bash":
                self._run(["bash", "-euo", "pipefail", "-c", block.text])
            elif block.mark in marks and block.language == "python":
                script += block.text + "\n"
        if script:
            path = self._scratch / "page.py"
            path.write_text(script)
            self._run([sys.executable, str(path)])

    def _write(self, block: Block) -> None:
        assert block.file is not None
        first, _, rest = block.text.partition("\n")
        path = self.folder / block.file
        path.parent.mkdir(exist_ok=True)
        path.write_text(rest if block.file.endswith(".md") else f"{first}\n{rest}")
        self.written.append(block.file)

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=4 * SECONDS,
            check=False,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "TMPDIR": str(self._scratch),
            },
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        self.printed.append(done.stdout)
