"""What stands in the documentation: its code runs, its commands and settings are there.

How a block says that it is not run, and why, stands in ``reader.py``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from reader import PAGES, ROOT, RUN, Reader, blocks

from engine import config
from engine.cli.commands import Command, benchmarks, installed
from engine.core import UserError

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
BENCHMARKS = benchmarks()
PAST = ("docs/log.md", "docs/measured.md")
"""Pages that tell of commands and settings as they were."""
MARKS = {
    str(page.relative_to(ROOT)): {each.mark for each in blocks(page, *RUN) if each.file is None}
    for page in PAGES
}
QUICK = [name for name, marks in MARKS.items() if "" in marks]
SLOW = [name for name, marks in MARKS.items() if "slow" in marks and "tutorial" not in name]

_COMMAND = re.compile(
    r"(?:\S*/)?(?:python -m (?P<module>[\w.]+)|brood (?P<brood>\w+)|make run) ?(?P<rest>.*)"
)
_SETTING = re.compile(r"(?P<key>[a-z_]+(?:\.[a-z_]+)+)(?:=\S*)?")
_STANDS_FOR = re.compile(r"=(…|\.\.\.)$|^(problem|seed)=[A-Z]+$|^(data|model\.path|[A-Z]+)=")
"""What a reader is to put something of the own in place of."""


@pytest.mark.parametrize("name", QUICK)
def test_the_code_of_a_page_runs(name: str, tmp_path: Path) -> None:
    Reader(tmp_path / "reader").follow(ROOT / name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_all_code_of_a_page_runs(name: str, tmp_path: Path) -> None:
    Reader(tmp_path / "reader").follow(ROOT / name, marks=("", "slow"))


@pytest.mark.parametrize("name", NAMES)
def test_code_says_what_it_is(name: str) -> None:
    """Code that nobody runs has no other form to hide in."""
    text = (ROOT / name).read_text()
    fences = re.findall(r"^ *```(\S*)$", text, flags=re.MULTILINE)[::2]
    assert set(fences) <= {*RUN, "yaml", "markdown", "text", "mermaid"}
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    hidden = re.findall(
        r"^ {4}(?:\S*python -m|make |brood |pip |uv |git ).*", outside, re.MULTILINE
    )
    assert hidden == []


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_of_a_page_are_there(name: str) -> None:
    for command in commands(ROOT / name):
        words = shlex.split(command, comments=True)
        found = _COMMAND.match(command)
        assert found is not None
        if (
            found["module"] == "engine.run"
            or found["brood"] == "run"
            or words[:2] == ["make", "run"]
        ):
            check_settings(command, words)
        elif found["module"] or found["brood"]:
            check_keys(command, words, found["module"], found["brood"])


def commands(page: Path) -> Iterator[str]:
    """Yield the commands of a page, in blocks and in lines."""
    text = page.read_text()
    lines = [
        line.strip()
        for block in blocks(page, "bash")
        for line in block.text.replace("\\\n", "").splitlines()
    ]
    spans = [
        " ".join(span.split())
        for span in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    ]
    for line in [*lines, *spans]:
        if _COMMAND.match(line) and "<TAB>" not in line:
            yield line


def check_settings(command: str, words: list[str]) -> None:
    """Resolve what a run is to be started with, as far as it is said."""
    if words[0] == "make":
        words = [
            word for each in words if each.startswith("ARGS=") for word in shlex.split(each[5:])
        ]
    given = [word for word in words if "=" in word and not _STANDS_FOR.search(word)]
    if any(word.startswith("resume=") for word in given):
        return
    for job in config.expand(given) if "--multirun" in words else [given]:
        try:
            config.resolve(job)
        except UserError as error:
            pytest.fail(f"{command}: {error}")


def bench(name: str) -> Command:
    """Return a benchmark as a command."""
    return Command(name=name, module=f"bench.{name}", says="")


def check_keys(command: str, words: list[str], module: str | None, name: str | None) -> None:
    """See that a command is there, and that its help names its keys."""
    known = {each.module if module else each.name: each for each in installed().values()}
    found = known.get(module or name)
    if module and module.startswith("install."):
        found = Command(name=module, module=module, says="")
    if module and module.startswith("bench."):
        assert module.removeprefix("bench.") in BENCHMARKS, command
        found = bench(module.removeprefix("bench."))
    assert found is not None and found.is_here, command
    keys = {word.partition("=")[0] for word in words if re.match(r"[a-z_.]+=", word)}
    taken = {*found.keys, *config.GROUPS}
    assert {key for key in keys if key not in taken and "." not in key} == set(), command


@pytest.mark.parametrize("name", [each for each in NAMES if each not in PAST])
def test_the_settings_of_a_page_are_there(name: str) -> None:
    reference = (ROOT / "docs" / "reference.md").read_text()
    known = set(re.findall(r"^\| `([a-z_.]+)` \|", reference, flags=re.MULTILINE))
    known |= {
        f"{at}.policy" for at in re.findall(r"^### ([a-z_.]+)\.policy$", reference, re.MULTILINE)
    }
    known |= {"problem.path", "model.engine", "search.operators"}
    sections = {each.partition(".")[0] for each in known if "." in each} - {"problem"}
    text = re.sub(r"```.*?```", "", (ROOT / name).read_text(), flags=re.DOTALL)
    for span in re.findall(r"`([^`\n]+)`", text):
        for word in span.split():
            section = re.match(r"([a-z_]+)=\w", word)
            whole = section is not None and section[1] in sections - set(config.GROUPS)
            assert not whole, f"{name}: {word} gives a section a value"
            found = _SETTING.fullmatch(word)
            if found is None or found["key"].partition(".")[0] not in sections:
                continue
            key = found["key"]
            below = key.startswith(("model.engine.", "search.operators."))
            above = any(each.startswith(f"{key}.") for each in known)
            assert key in known or below or above, f"{name}: {word}"
