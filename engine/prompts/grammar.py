"""Grammars that hold an infill to what can run: names that exist, parentheses that close.

A small model knows better what code looks like than which names a module has, and often writes one
that nothing defines (``docs/log.md``). Under a grammar it can only choose among numbers, the
variables that are bound at the place, and the functions of the imported modules, with as many
arguments as they take. A place that held a whole number gets a whole number, and one that held True
or False gets one of these. No rule refers to itself, so an infill ends within a few dozen tokens.

Covers: writing the grammars, in the EBNF that vLLM's structured output takes. Does not cover
shapes: an infill that parses may still add a long array to a short one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from engine.syntax.library import Function, functions_of
from engine.syntax.scope import Scope

_REDUCTIONS = ("max", "mean", "min", "std", "sum", "var")
# What numpy's and scipy's functions take as a mode.
_MODES = ("constant", "full", "nearest", "reflect", "same", "valid")
# What can be called where no module is imported.
_WITHOUT_MODULES = ('"abs(" data ")"',)

_NUMBERS = r"""
integer ::= "0" | "-"? [1-9] [0-9]? [0-9]?
number ::= "0" | "-"? [1-9] [0-9]? ("." [0-9] [0-9]?)? | "-"? "0." [0-9] [0-9]? [0-9]?
"""

_INTEGERS = r"""
count ::= whole (" + " whole | " - " whole | " * " whole | " // " whole)?
whole ::= {whole} | integer
"""

# Calls are two deep: `call` takes what `inner` gives.
_EXPRESSIONS = r"""
expression ::= side (operator side)?
side ::= call | leaf | "(" leaf operator leaf ")"
operator ::= " + " | " - " | " * " | " / " | " ** "
leaf ::= data | data "." reduction "()" | {leaf} | number
data ::= array subscript?
subscript ::= "[" count "]" | "[" count? ":" count? "]" | "[::-1]"
first ::= data | data operator leaf | inner
more ::= ", " (leaf | inner | mode)
second ::= ", " leaf
"""


_TRUTH = 'truth ::= "True" | "False"\n'

Start = Literal["integer", "number", "truth", "count", "expression"]


def grammar_of(start: Start, scope: Scope, *, modules: Mapping[str, str]) -> str:
    """Return a grammar for a number, a truth value or an expression.

    Args:
        start: what is written: a whole number, a number, True or False, an expression that gives a
            whole number, or any expression.
        scope: the variables bound at the place; at least one array.
        modules: local name to path, of modules that can be imported here; none is fine.
    """
    if start in ("integer", "number"):
        return _grammar(start, _NUMBERS)
    if start == "truth":
        return _grammar(start, _TRUTH)
    rules = _rules(scope, modules) if start == "expression" else ""
    return _grammar(start, _NUMBERS, _count_rules(scope), rules)


def call_grammar(scope: Scope, *, module: str, modules: Mapping[str, str]) -> str:
    """Return a grammar for what follows ``module.``: one of its functions and its arguments.

    ``module`` is the local name of a module that has a function; see `grammar_of`.
    """
    called = _calls(functions_of(modules[module]), prefix="", first="first", further="more")
    chosen = f"chosen ::= {' | '.join(called)}\n"
    return _grammar("chosen", chosen, _NUMBERS, _count_rules(scope), _rules(scope, modules))


def _grammar(start: str, *rules: str) -> str:
    # The space is the one that the prompt leaves out; the new line lets the model end.
    return f'root ::= " "? {start} "\\n"\n' + "".join(rules)


def _count_rules(scope: Scope) -> str:
    lengths = [f"len({name})" for name in scope.arrays]
    return _INTEGERS.format(whole=_alternatives([*scope.integers, *lengths]))


def _rules(scope: Scope, modules: Mapping[str, str]) -> str:
    library = {local: functions_of(module) for local, module in sorted(modules.items())}
    calls, inner = [], []
    for local, functions in library.items():
        calls += _calls(functions, prefix=f"{local}.", first="first", further="more")
        short = [
            replace(function, most=min(function.most, 2))
            for function in functions
            if function.least <= 2
        ]
        inner += _calls(short, prefix=f"{local}.", first="data", further="second")
    return (
        _EXPRESSIONS.format(leaf=_alternatives(scope.integers or scope.arrays))
        + f"call ::= {' | '.join(calls) or 'inner'}\n"
        + f"inner ::= {' | '.join(inner or _WITHOUT_MODULES)}\n"
        + f"array ::= {_alternatives(scope.arrays)}\n"
        + f"reduction ::= {_alternatives(_REDUCTIONS)}\n"
        + f"mode ::= {_alternatives(_quoted(word) for word in _MODES)}\n"
    )


def _calls(functions: Iterable[Function], *, prefix: str, first: str, further: str) -> list[str]:
    """Return alternatives that call each function with as many arguments as it takes.

    ``first`` and ``further`` are the rules for the first argument and for a comma and another one.
    """
    by_arity: dict[tuple[int, int], list[str]] = {}
    for function in functions:
        by_arity.setdefault((function.least, function.most), []).append(prefix + function.name)
    return [
        f'({_alternatives(names)}) "(" {first}'
        + f" {further}" * (least - 1)
        + f" {further}?" * (most - least)
        + ' ")"'
        for (least, most), names in sorted(by_arity.items())
    ]


def _quoted(word: str) -> str:
    return f'\\"{word}\\"'


def _alternatives(words: Iterable[str]) -> str:
    return " | ".join(f'"{word}"' for word in words)
