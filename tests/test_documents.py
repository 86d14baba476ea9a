"""YAML and JSON that others wrote: plain values, or the one error that their readers name."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from engine import config
from engine.cluster.last_nodes import LastNodes
from engine.core import UserError
from engine.documents import MOST_VALUES, compose_yaml, read_json, read_yaml
from engine.problem import load_problem
from engine.problem.declaration import read_declaration
from engine.problem.places import place_of_key
from engine.sweep.plan import Planned, read_sweep

LAUGHS = "\n".join(
    ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10))]
)
STUMBLES = {
    "no date": "direction: 2001-99-99",
    "no integer": "direction: !!int ''",
    "no float": "direction: !!float ''",
    "no boolean": "direction: !!bool perhaps",
    "no time": "direction: !!timestamp soon",
    "no bytes": "direction: !!binary 'é'",
    "digits": f"direction: {'9' * 5000}",
    "depth": "direction: " + "[" * 5000,
    "more depth": "direction: " + "[" * 300_000,
    "depth without a bracket": "- " * 300_000,
    "references": LAUGHS,
    "a circle": "direction: &a [*a]",
    "an object": "direction: !!python/object/apply:os.system [true]",
    "no key": "? [a]\n: 1",
}


@pytest.mark.parametrize("text", STUMBLES.values(), ids=STUMBLES)
def test_what_makes_a_reader_of_yaml_stumble_is_one_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError) as caught:
        read_yaml(text)
    with contextlib.suppress(yaml.YAMLError):  # where only a value is none
        compose_yaml(text)
    assert len(str(caught.value)) < 1000


def test_yaml_that_is_well_is_read() -> None:
    found = read_yaml("a: &x [1, 2.5, ~, 2026-11-23]\nb: *x\nc: {d: no}\n")
    assert found["a"] == found["b"] and found["a"][:3] == [1, 2.5, None]
    assert found["c"] == {"d": False}
    assert len(read_yaml(f"[{','.join('1' * 1000)}]")) == 1000 < MOST_VALUES


def _declaration(folder: Path, text: str) -> object:
    (folder / "problem.yaml").write_text(text)
    place_of_key(folder, "direction")
    return read_declaration(folder / "problem.yaml")


def _settings(folder: Path, text: str) -> object:
    (folder / "config.yaml").write_text(text)
    return config.load(folder / "config.yaml")


def _sweep(folder: Path, text: str) -> object:
    (folder / "sweep.yaml").write_text(text)
    return read_sweep(folder)


def _peer(folder: Path, text: str) -> object:
    (folder / "initial_program.py").write_text("def f():\n    return 1\n")
    (folder / "evaluator.py").write_text("def evaluate(path):\n    return {}\n")
    (folder / "config.yaml").write_text(text)
    return load_problem(folder)


@pytest.mark.parametrize("read", [_declaration, _settings, _sweep, _peer])
@pytest.mark.parametrize("text", STUMBLES.values(), ids=STUMBLES)
def test_every_reader_says_so_in_a_line(
    tmp_path: Path, read: Callable[[Path, str], object], text: str
) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("deep", [False, True])  # which another loader reads
def test_a_date_is_one_whatever_else_the_process_imports(deep: bool) -> None:
    code = (
        "import lmformatenforcer.external.jsonschemaobjectutil, yaml\n"
        "from engine.documents import read_yaml\n"
        "text = 'a: 2024-01-31'\n"
        f"given = text + '\\nb: \"' + '[' * 6000 * {deep} + '\"'\n"
        "print(yaml.safe_load(text)['a'] == '2024-01-31', read_yaml(given)['a'].day)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True 31\n"  # it has PyYAML make a text of it


def test_json_nested_too_deeply_is_no_json(tmp_path: Path) -> None:
    deep = "[" * 100_000
    with pytest.raises(ValueError, match="deeply"):
        read_json(deep)
    assert read_json("[1]") == [1]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "summary.json").write_text(deep)
    (tmp_path / "machines.json").write_text(deep)
    settings = config.resolve(["problem=signal", "model=mutation"])
    planned = Planned(name="run", varied={}, settings=replace(settings, runs=str(tmp_path)))
    assert planned.summary() is None
    assert LastNodes(tmp_path).get(0) == ""
