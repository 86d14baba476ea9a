"""The task in words, from wherever a folder has it."""

import re
from collections.abc import Iterator
from pathlib import Path

from engine.core import UserError
from engine.problem.declaration import read
from engine.problem.peers.config import Config
from engine.problem.peers.recognise import PeerFolder, parsed
from engine.problem.peers.script import texts

_KEYS = (("prompt", "system_message"), ("system_message",), ("prompts", "system_message"))
_NAMES = ("task_sys_msg", "SYS_MSG", "system_message", "SYSTEM_MESSAGE")
_LONGEST = 100_000


def statement(peer: PeerFolder, config: Config) -> tuple[str, str]:
    """Return the task in words, and where it was found.

    The configuration's system message, else a script's, else the first paragraph of the README or
    of the evaluator's docstring, else a line that names the folder.

    Raises:
        UserError: a file can't be read, or the message is no text.
    """
    for text, source in _found(peer, config):
        if text.strip():
            return text.strip()[:_LONGEST], source
    return (
        f"Improve the program {peer.folder.name}: the evaluator's score is maximised.",
        "its name",
    )


def _found(peer: PeerFolder, config: Config) -> Iterator[tuple[str, str]]:
    for keys in _KEYS:
        text = config.text(*keys) if isinstance(config.get(keys[0]), str | dict) else None
        if text:
            where = config.where(*keys)
            yield _or_file(text, peer.folder, where), where
    for path in peer.configs:
        text = _nested(Config(path).values, _NAMES[0])
        if text:
            yield text, f"{path}"
    for path in peer.scripts:
        named = texts(parsed(path, read(path)))
        for name in (*_NAMES, *(each for each in named if each.lower().endswith("sys_msg"))):
            if name in named:
                yield named[name], f"{path}"
    for path in sorted(peer.folder.glob("[Rr][Ee][Aa][Dd][Mm][Ee]*")):
        if path.is_file():
            yield _paragraph(read(path)), f"{path}, its first paragraph"
    docstring = _docstring(peer.evaluator)
    yield _paragraph(docstring), f"{peer.evaluator}, its docstring"


def _or_file(text: str, folder: Path, where: str) -> str:
    """Return the content of the folder's file that a short text names; else the text.

    Args:
        text: the message.
        folder: the problem's.
        where: the message stands, for an error.

    Raises:
        UserError: it names a file elsewhere, which nobody has said that the model may read.
    """
    name = text.strip()
    if len(name) < 200 and "\n" not in name and re.fullmatch(r"[\w./-]+\.(txt|md)", name):
        for path in (folder / name, folder / "templates" / name, folder / "prompts" / name):
            if path.is_file():
                if not path.resolve().is_relative_to(folder.resolve()):
                    raise UserError(
                        f"{where}: the message names {name}, which is no file of the folder; copy "
                        "it there"
                    )
                return read(path)
    return text


def _nested(value: object, name: str, depth: int = 0) -> str | None:
    if isinstance(value, dict) and depth < 8:
        if isinstance(value.get(name), str):
            return str(value[name])
        found = (_nested(each, name, depth + 1) for each in value.values())
        return next(filter(None, found), None)
    return None


def _docstring(path: Path) -> str:
    import ast

    if path.suffix != ".py":
        return ""
    return ast.get_docstring(parsed(path, read(path))) or ""


def _paragraph(text: str) -> str:
    """Return the first paragraph that is prose: no heading, list, fence, picture or table."""
    fenced = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", fenced):
        lines = [line for line in paragraph.strip().splitlines() if not line.startswith("#")]
        kept = " ".join(" ".join(lines).split())
        if kept and not re.match(r"([-*|<>=!]|\[!|\d+\.)", kept):
            return kept
    return ""
