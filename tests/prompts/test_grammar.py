"""The grammars, as the library reads them that vLLM uses: what they let through and what not."""

from __future__ import annotations

import ast
import keyword

import pytest
from grammars import accepts, sentence
from hypothesis import given
from hypothesis import strategies as st

from engine import syntax
from engine.prompts.grammar import call_grammar, grammar_of
from engine.syntax.library import functions_of
from engine.syntax.scope import Scope

MODULES = {"np": "numpy", "ndimage": "scipy.ndimage", "signal": "scipy.signal"}
SMALL = {"m": "math"}


def scope(integers: str = "", arrays: str = "x") -> Scope:
    return Scope(
        integers=tuple(integers.split()),
        arrays=tuple(arrays.split()),
        assignable=tuple(arrays.split()),
    )


SIGNAL = scope("window_size output_length i", "noisy_signal weights")
INTEGER = grammar_of("integer", SIGNAL, modules={})
NUMBER = grammar_of("number", SIGNAL, modules={})


ACCEPTED = [
    (INTEGER, ["42\n", " 42\n", "0\n", "-1\n", "999\n"]),
    (
        NUMBER,
        ["42\n", " 0.5\n", "-0.125\n", "3.14\n", "0\n", "-7\n"],
    ),
    (
        grammar_of("count", SIGNAL, modules={}),
        ["7\n", " i\n", "window_size // 2\n", "len(weights) - window_size\n"],
    ),
    (grammar_of("count", scope("", "x"), modules={}), ["len(x)\n", "3\n", "len(x) + -2\n"]),
    (
        grammar_of("expression", SIGNAL, modules=MODULES),
        [
            " np.exp(weights) * 0.5\n",
            "weights\n",
            " noisy_signal[i]\n",
            "noisy_signal[i:i]\n",
            "noisy_signal[:window_size - 1]\n",
            "weights[::-1]\n",
            "weights.sum() / 2\n",
            "(weights + 1) ** 0.5\n",
            " np.maximum(weights, 0)\n",
            'np.convolve(noisy_signal, weights, "same")\n',
            "np.sum(np.exp(weights))\n",
            "np.sum(np.maximum(weights, 0))\n",
            "signal.savgol_filter(noisy_signal, window_size, 3)\n",
        ],
    ),
    (
        call_grammar(SIGNAL, module="ndimage", modules=MODULES),
        [
            " gaussian_filter(noisy_signal, window_size)\n",
            "gaussian_filter1d(noisy_signal * 0.5, 3)\n",
            "median_filter(noisy_signal)\n",
            "convolve(noisy_signal, np.exp(weights))\n",
        ],
    ),
    (grammar_of("expression", scope(), modules={}), ["abs(x)\n", "abs(x) - x\n", "x * 2\n"]),
    (grammar_of("expression", scope(arrays="é ü"), modules={}), ["é + ü\n", "abs(ü[1:2])\n"]),
]

REFUSED = [
    (
        INTEGER,
        ["", "42", "4.2\n", "007\n", "1000\n", "--1\n", "x\n", "  4\n", "4 \n"],
    ),
    (
        NUMBER,
        ["", ".5\n", "5.\n", "-0\n", "1e3\n", "00.5\n", "0.1234\n", "x\n"],
    ),
    (
        grammar_of("count", SIGNAL, modules={}),
        ["7.5\n", "i / 2\n", "weights\n", "j\n", "i ** 2\n", "len(i)\n", "len(weights\n", "i +\n"],
    ),
    (grammar_of("count", scope("", "x"), modules={}), ["x\n", "len(y)\n", "\n"]),
    (
        grammar_of("expression", SIGNAL, modules=MODULES),
        [
            "\n",
            " undefined\n",
            "window_siz\n",
            "window_size_\n",
            "window_size[0]\n",
            "np.no_such_function(weights)\n",
            "np.test(weights)\n",
            "np.exp\n",
            "np.exp()\n",
            "np.exp(weights\n",
            "np.exp(weights))\n",
            "np.exp(weights, weights)\n",
            "np.maximum(weights)\n",
            "np.sum(np.exp(weights, weights))\n",
            "np.sum(np.maximum(weights))\n",
            "np.sum(weights, 1, 2, 3)\n",
            "(weights + 1\n",
            "weights[0.5]\n",
            "weights[weights]\n",
            "weights +\n",
            "weights + undefined\n",
            "weights.no_such()\n",
            "weights; import os\n",
            "weights  # why\n",
            "exec(weights)\n",
            "math.exp(weights)\n",
            "'weights'\n",
            "weights\nweights\n",
        ],
    ),
    (
        call_grammar(SIGNAL, module="ndimage", modules=MODULES),
        [
            "exp(weights)\n",
            "ndimage.gaussian_filter(weights, 1)\n",
            "gaussian_filter\n",
            "gaussian_filter(noisy_signal)\n",
            "gaussian_filter(noisy_signal, 1, 2, 3)\n",
            "gaussian_filter(noisy_signal, undefined)\n",
            "weights\n",
        ],
    ),
    (
        grammar_of("expression", scope(), modules={}),
        ["abs()\n", "abs(x, x)\n", "y\n", "np.exp(x)\n"],
    ),
]


@pytest.mark.parametrize(
    ("grammar", "text"), [(grammar, text) for grammar, texts in ACCEPTED for text in texts]
)
def test_accepted(grammar: str, text: str) -> None:
    assert accepts(grammar, text)


@pytest.mark.parametrize(
    ("grammar", "text"), [(grammar, text) for grammar, texts in REFUSED for text in texts]
)
def test_refused(grammar: str, text: str) -> None:
    assert not accepts(grammar, text)


@pytest.mark.parametrize("modules", [{}, SMALL, MODULES], ids=["none", "one", "three"])
@pytest.mark.parametrize("variables", [scope(), scope("n"), SIGNAL, scope("é", "ü ß x")], ids=str)
def test_what_a_grammar_lets_through_parses_and_reads_what_is_there(
    variables: Scope, modules: dict[str, str]
) -> None:
    grammars = [
        ("", INTEGER),
        ("", NUMBER),
        ("", grammar_of("count", variables, modules={})),
        ("", grammar_of("expression", variables, modules=modules)),
        *(
            (f"{local}.", call_grammar(variables, module=local, modules=modules))
            for local in modules
        ),
    ]
    imports = "".join(f"import {path} as {local}\n" for local, path in modules.items())
    parameters = ", ".join([*variables.integers, *variables.arrays])
    for before, grammar in grammars:
        for seed in range(12):
            written = sentence(grammar, seed).strip()
            program = f"{imports}def f({parameters}):\n    return {before}{written}\n"
            tree = syntax.parse(program)
            assert tree is not None, program
            assert syntax.read(program).undefined == (), program
            assert len(written) < 300


def test_the_sentences_tried_here_differ() -> None:
    grammar = grammar_of("expression", SIGNAL, modules=MODULES)
    assert len({sentence(grammar, seed) for seed in range(20)}) == 20


def test_a_count_is_a_whole_number_and_a_number_is_one() -> None:
    for seed in range(50):
        whole = sentence(grammar_of("count", scope("n", "x"), modules={}), seed)
        try:
            assert type(eval(whole, {"n": 3, "x": [1, 2]})) is int
        except ZeroDivisionError:
            assert "// " in whole
        assert type(ast.literal_eval(sentence(INTEGER, seed).strip())) is int
        assert abs(ast.literal_eval(sentence(NUMBER, seed).strip())) < 1000


def test_a_call_has_as_many_arguments_as_its_function_takes() -> None:
    functions = {function.name: function for function in functions_of("numpy")}
    grammar = call_grammar(SIGNAL, module="np", modules={"np": "numpy"})
    for seed in range(60):
        tree = ast.parse("np." + sentence(grammar, seed).strip())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                base = node.func.value
                if isinstance(base, ast.Name) and base.id == "np":
                    function = functions[node.func.attr]
                    assert function.least <= len(node.args) <= function.most, ast.unparse(node)


identifiers = st.from_regex(r"[^\W\d]\w{0,10}", fullmatch=True).filter(
    lambda text: text.isidentifier() and not keyword.iskeyword(text)
)


@given(
    integers=st.lists(identifiers, max_size=3, unique=True),
    arrays=st.lists(identifiers, min_size=1, max_size=3, unique=True),
)
def test_any_variable_can_stand_in_a_grammar(integers: list[str], arrays: list[str]) -> None:
    variables = Scope(integers=tuple(integers), arrays=tuple(arrays), assignable=tuple(arrays))
    expressions = grammar_of("expression", variables, modules=SMALL)
    for name in arrays:
        assert accepts(expressions, f" {name}\n")
        assert accepts(grammar_of("count", variables, modules={}), f"len({name})\n")
        assert accepts(call_grammar(variables, module="m", modules=SMALL), f"fsum({name})\n")
    for name in integers:
        assert accepts(expressions, f"m.sqrt({arrays[0]}) / {name}\n")
        assert accepts(grammar_of("count", variables, modules={}), f"{name} - 1\n")
    other = "q" * 12
    assert not accepts(expressions, f" {other}\n")


@pytest.mark.parametrize("module", ["numpy.typing", "scipy"])
def test_a_module_with_few_functions_or_none_does_no_harm(module: str) -> None:
    modules = {"np": "numpy", "small": module}
    assert accepts(grammar_of("expression", SIGNAL, modules=modules), "np.exp(weights)\n")
    alone = grammar_of("expression", SIGNAL, modules={"small": module})
    assert accepts(alone, "weights * 2\n")


def test_many_modules() -> None:
    paths = ["numpy", "numpy.fft", "numpy.linalg", "scipy.ndimage", "scipy.signal", "scipy.special"]
    modules = {f"module{number}": path for number, path in enumerate(paths)}
    grammar = grammar_of("expression", SIGNAL, modules=modules)
    assert accepts(grammar, "module1.fft(weights)\n")
    assert accepts(grammar, "module5.erf(weights) * module2.norm(weights)\n")
    assert not accepts(grammar, "module1.erf(weights)\n")


def test_the_same_scope_gives_the_same_grammar() -> None:
    there = grammar_of("expression", SIGNAL, modules=MODULES)
    back = grammar_of("expression", SIGNAL, modules=dict(reversed(MODULES.items())))
    assert there == back
