"""Files in other languages than Python: their tokens, and what is measured of them.

Pygments knows the language by the file's name. Of a language that it does not know, and of plain
text, words, numbers and signs are told apart, and no comments.

Covers: what can be said without a parser of the language. Does not cover whether a text is valid in
it: its compiler says so.
"""

import functools
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pygments.lexer import Lexer, RegexLexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import Comment, Name, Number, Operator, Punctuation, Text, Whitespace
from pygments.util import ClassNotFound

from engine.core import Program

# Languages in which a line's indentation says nothing.
_FREE_FORM = frozenset(
    {
        *("c", "cc", "cpp", "cu", "cxx", "h", "hh", "hpp", "cs", "d", "go", "java", "js", "kt"),
        *("m", "mm", "php", "pl", "rs", "scala", "sql", "swift", "ts", "v", "sv", "zig", "glsl"),
    }
)
_DASHES = frozenset({"ada", "adb", "elm", "hs", "lua", "sql", "vhd", "vhdl"})
_LOOPS = frozenset({"do", "for", "foreach", "loop", "repeat", "until", "while"})
_BRANCHES = frozenset({"case", "catch", "elif", "elseif", "elsif", "except", "if", "match", "when"})
_NO_CALLS = _LOOPS | _BRANCHES | {"return", "sizeof", "switch", "and", "or", "not", "in"}
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_WORD = re.compile(r"[^\W\d]\w*")
_SUFFIXES = "uUlLfFzZ"  # of a number's type, in C and its relatives
_SEPARATORS = str.maketrans("", "", "_'")


@dataclass(frozen=True, kw_only=True, slots=True)
class TextToken:
    """A piece of a text that is neither space nor comment.

    Attributes:
        start: its first character's place in the text.
        is_number: whether it is a number as the language writes them.
    """

    text: str
    start: int
    is_number: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Decimal:
    """A number in decimal notation.

    Attributes:
        digits: how it is written, without a suffix of its type.
        value: what it stands for; an ``int`` where it is whole and written so.
    """

    digits: str
    value: int | float


class _AnyText(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """Words, numbers and signs."""

    name = "any text"
    aliases: Sequence[str] = ()
    filenames: Sequence[str] = ()
    tokens = {  # noqa: RUF012  # as its base class has it
        "root": [
            (r"\s+", Whitespace),
            (r"\d+(\.\d+)?([eE][+-]?\d+)?", Number),
            (r"\w+", Name),
            (r"[()\[\]{}]", Punctuation),
            (r".", Operator),
        ]
    }


_ANY_TEXT = _AnyText()
_CODE = (Comment.Preproc, Comment.PreprocFile)  # which Pygments counts among comments


def tokens_of(name: str, text: str) -> tuple[TextToken, ...]:
    """Return the tokens of a file in their order; comments are none, preprocessors' lines are."""
    return tuple(_tokens(_lexer(name.rpartition("/")[2]), text, 0))


def _tokens(lexer: Lexer, text: str, offset: int) -> Iterator[TextToken]:
    for start, kind, value in lexer.get_tokens_unprocessed(text):
        word, place = value.strip(), offset + start + len(value) - len(value.lstrip())
        if not word or (kind in Comment and not any(kind in each for each in _CODE)):
            continue
        if kind in Comment.Preproc:  # a whole line
            yield from _tokens(_ANY_TEXT, word, place)
        else:
            yield TextToken(text=word, start=place, is_number=kind in Number)


def decimal_of(token: TextToken) -> Decimal | None:
    """Return a token as a decimal number; None of what is none, and of a base that is not ten."""
    digits = token.text.rstrip(_SUFFIXES)
    plain = digits.translate(_SEPARATORS)
    is_octal = plain.isdigit() and plain.startswith("0") and plain.strip("0")
    if not token.is_number or not plain.isascii() or is_octal:
        return None
    try:
        return Decimal(digits=digits, value=int(plain) if plain.isdigit() else float(plain))
    except ValueError:
        return None


def language_of(name: str) -> str:
    """Return the name of a file's language, as fences have it; ``text`` where it is not known."""
    lexer = _lexer(name.rpartition("/")[2])
    return str(lexer.aliases[0]) if lexer.aliases else "text"


def comment_of(name: str) -> str:
    """Return what begins a line's comment in a file's language: a guess by its suffix."""
    suffix = name.rpartition(".")[2].lower()
    if suffix in _DASHES:
        return "--"
    return "//" if suffix in _FREE_FORM else "#"


def measured(name: str, text: str) -> Program:
    """Return what is known of a file.

    Its ``nodes`` are its tokens, its ``depth`` is that of its brackets; loops, branches and calls
    are counted by their words, whatever these mean in the language.
    """
    tokens = tokens_of(name, text)
    words = [token.text for token in tokens]
    depth = deepest = 0
    for sign in (sign for word in words for sign in word if len(word) <= 2):
        depth += (sign in _OPENING) - (sign in _CLOSING)
        deepest = max(deepest, depth)
    calls = (
        now for now, after in pairwise(words) if after.startswith("(") and _WORD.fullmatch(now)
    )
    return Program(
        text=text,
        key=_key(name, text, tokens),
        undefined=(),
        nodes=len(words),
        depth=deepest,
        loops=sum(word in _LOOPS for word in words),
        branches=sum(word in _BRANCHES for word in words),
        calls=sum(word not in _NO_CALLS for word in calls),
    )


def _key(name: str, text: str, tokens: Sequence[TextToken]) -> str:
    """Return a digest that is equal for texts that differ in comments or spaces alone.

    Line ends count, and so does indentation where the language may mean something by it.
    """
    free = name.rpartition(".")[2].lower() in _FREE_FORM
    digest = hashlib.sha256()
    before = 0
    for token in tokens:
        line_start = text.rfind("\n", before, token.start) + 1
        if line_start:
            indentation = "" if free else text[line_start : token.start]
            digest.update(b"\n" + indentation.encode(errors="surrogatepass"))
        digest.update(token.text.encode(errors="surrogatepass") + b"\0")
        before = token.start
    return digest.hexdigest()


@functools.cache
def _lexer(name: str) -> Lexer:
    try:
        lexer = get_lexer_for_filename(name)
    except ClassNotFound:
        return _ANY_TEXT
    next(iter(lexer.get_tokens_unprocessed("a\n")), None)  # compiles its rules
    return lexer if not _is_prose(lexer) else _ANY_TEXT


def _is_prose(lexer: Lexer) -> bool:
    """Whether a lexer takes whole texts for one token."""
    (_, kind, _), *_ = lexer.get_tokens_unprocessed("a b\n")
    return kind is Text
