"""Every hook into vLLM and LMCache fits what is installed, and one that does not is named."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

import engine
from engine.core import UserError
from engine.inference import LanguageModel, compat, is_cpu_build, kv_server, kv_transfer
from engine.inference.compat import Hook, Part
from engine.inference.engine_options import engine_args
from engine.settings import CacheSettings, ModelSettings

ENGINE = Path(engine.__file__).parent
PACKAGES = ("vllm", "lmcache", "llvmlite")
PARTS = [part for part in get_args(Part) if part != "flash_attention" or not is_cpu_build()]
EVERY = [hook for part in PARTS for hook in compat.hooks(part)]


def parts(kind: str) -> list[Any]:
    """Return each hook with each name of one kind that it relies on."""
    found = {
        f"{hook.target}.{name}": (hook, name) for hook in EVERY for name in getattr(hook, kind)
    }
    return [pytest.param(*found[each], id=each) for each in found]


@pytest.fixture(autouse=True)
def prepared(model: LanguageModel) -> LanguageModel:
    """The environment as it is in a run, with all packages imported as a run imports them."""
    return model


def target(hook: Hook) -> Any:
    module, _, name = hook.target.partition(":")
    found: Any = importlib.import_module(module)
    return getattr(found, name) if name else found


def replace_target(monkeypatch: pytest.MonkeyPatch, hook: Hook, other: object) -> None:
    module, _, name = hook.target.partition(":")
    monkeypatch.setattr(importlib.import_module(module), name, other)


def changed(*, a_new_parameter: object) -> None:
    """Stand in for a function of another version."""


def assert_named(hook: Hook, name: str, why: str) -> None:
    """Assert that what is said of a broken hook names it and what no longer fits."""
    whole = f"{hook.target}.{name}" if name else hook.target
    named = f"the hook {whole.replace(':', '.')} (engine.inference.{hook.user} "
    (line,) = [line for line in hook.misfits() if named in line and why in line]
    assert line.startswith(f"{hook.package} ")
    assert line.endswith(f"; Brood was read against {hook.read}")


# What is installed.


@pytest.mark.parametrize("hook", EVERY, ids=lambda hook: f"{hook.user}-{hook.target}")
def test_every_hook_fits(hook: Hook) -> None:
    assert list(hook.misfits()) == []


def test_each_hook_was_read_in_the_version_that_is_pinned() -> None:
    declared = tomllib.loads((ENGINE.parent / "pyproject.toml").read_text())["project"]
    pins = [*declared["dependencies"], *declared["optional-dependencies"]["cpu"]]
    pins += declared["optional-dependencies"]["cuda"]
    pins += (ENGINE.parent / "requirements" / "cpu.txt").read_text().split()
    for hook in EVERY:
        assert f"{hook.package}=={hook.read}" in pins


def test_the_attention_function_fits_the_source_that_comes_with_vllm() -> None:
    """It can be imported where CUDA is, but its source is in the build for CPUs, too."""
    (hook,) = compat.hooks("flash_attention")
    (arguments,) = hook.calls.values()
    source = Path(sys.modules["vllm"].__file__ or "").with_name("vllm_flash_attn")
    text = (source / "flash_attn_interface.py").read_text()
    (function,) = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name in hook.calls
    ]
    known = {each.arg for each in function.args.args}
    assert {each.strip().removesuffix("=") for each in arguments.split(",")} <= known


# Other versions.


@pytest.mark.parametrize("hook", EVERY, ids=lambda hook: f"{hook.user}-{hook.target}")
def test_a_module_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch, hook: Hook) -> None:
    module = hook.target.partition(":")[0]
    monkeypatch.setitem(sys.modules, module, None)
    assert_named(hook, "", f"there is no module {module}")


@pytest.mark.parametrize(
    "hook", [each for each in EVERY if ":" in each.target], ids=lambda hook: hook.target
)
def test_a_class_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch, hook: Hook) -> None:
    module, _, name = hook.target.partition(":")
    target(hook)  # vLLM makes some of them when they are asked for
    there = importlib.import_module(module)
    monkeypatch.delattr(there, "__getattr__", raising=False)
    if name in vars(there):
        monkeypatch.delattr(there, name)
    assert_named(hook, "", f"there is no {name}")


@pytest.mark.parametrize(("hook", "name"), parts("reads"))
def test_a_name_that_is_gone_is_named(
    monkeypatch: pytest.MonkeyPatch, hook: Hook, name: str
) -> None:
    there = target(hook)
    if isinstance(there, Mapping):
        monkeypatch.delitem(there, name)
    elif isinstance(there, enum.EnumMeta):  # can't lose a member
        rest = {each.name: each.value for each in there if each.name != name}
        replace_target(monkeypatch, hook, enum.Enum(there.__name__, rest))
    else:
        for each in inspect.getmro(there) if isinstance(there, type) else [there]:
            if name in inspect.get_annotations(each):
                monkeypatch.delitem(each.__annotations__, name)
            if name in vars(each):
                monkeypatch.delattr(each, name)
            if inspect.isfunction(vars(each).get("__init__")):  # which may set it
                monkeypatch.setattr(each, "__init__", changed)
    assert_named(hook, name, "it is not there")


@pytest.mark.parametrize(("hook", "name"), [*parts("overrides"), *parts("calls")])
def test_a_function_with_other_parameters_is_named(
    monkeypatch: pytest.MonkeyPatch, hook: Hook, name: str
) -> None:
    if name:
        monkeypatch.setattr(target(hook), name, changed)
    else:
        replace_target(monkeypatch, hook, changed)
    assert_named(hook, name, "a_new_parameter")


@pytest.mark.parametrize(("hook", "name"), parts("says"))
def test_words_that_are_gone_are_named(
    monkeypatch: pytest.MonkeyPatch, hook: Hook, name: str
) -> None:
    monkeypatch.setattr(target(hook), name, changed)
    for words in hook.says[name]:
        assert_named(hook, name, f"{words!r} does not stand in it")


def test_a_new_event_of_the_memory_tier_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    (hook,) = [each for each in EVERY if each.target.endswith(":L1ManagerListener")]
    events = target(hook).__abstractmethods__
    monkeypatch.setattr(target(hook), "__abstractmethods__", events | {"on_l1_keys_moved"})
    assert_named(hook, "on_l1_keys_moved", "it is abstract")


# Where it is said.


def test_an_engine_is_not_made_of_a_version_that_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, settings: ModelSettings
) -> None:
    from vllm.v1.engine.llm_engine import LLMEngine

    monkeypatch.setattr(LLMEngine, "step", changed)
    monkeypatch.delattr(LLMEngine, "abort_request")
    with pytest.raises(UserError, match=r"LLMEngine\.abort_request .* \(1 more do not fit") as it:
        engine_args(settings=settings, folder="anywhere", seed=0)
    assert "\n" not in str(it.value)


def test_a_server_of_a_version_that_does_not_fit_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from lmcache.v1.distributed.storage_manager import StorageManager\n"
        "StorageManager.status = StorageManager.report_status\n"
        "del StorageManager.report_status\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    folder = tmp_path / "kv"
    settings = CacheSettings(
        kind="lmcache", memory_gb=0.1, disk_gb=1.0, folder=str(folder), server=None
    )
    with (
        kv_server(settings, chunk_tokens=64, on_gpu=False) as server,
        pytest.raises(UserError, match=r"StorageManager\.report_status \(engine"),
    ):
        kv_transfer(server, weights=tmp_path)
    assert list(folder.iterdir()) == []


# Nothing is missing here.


def modules(package: str = "") -> Iterator[ast.Module]:
    """Yield the modules of the engine, or of a package of it."""
    for path in (ENGINE / package).rglob("*.py"):
        yield ast.parse(path.read_text())


def test_every_import_of_the_engine_is_checked() -> None:
    known = {hook.target.replace(":", ".") for hook in EVERY}
    known |= {hook.target.partition(":")[0] for hook in EVERY}
    for hook in EVERY:
        if ":" not in hook.target:
            known |= {f"{hook.target}.{name}" for name in (*hook.reads, *hook.calls, *hook.says)}
    imported = {
        f"{node.module}.{each.name}"
        for tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for each in node.names
        if node.module.partition(".")[0] in PACKAGES
    }
    assert len(imported) > 15
    assert imported - known == set()


def test_every_private_name_that_inference_uses_is_checked() -> None:
    known = {name for hook in EVERY for name in (*hook.reads, *hook.overrides, *hook.calls)}
    used = set()
    for tree in modules("inference"):
        names, own = set(), set()
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                    own.add(name)
                case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                    own.add(name)
                case ast.Attribute(value=ast.Name(id="os")):
                    pass
                case (
                    ast.Attribute(attr=name)
                    | ast.Call(
                        func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]
                    )
                ):
                    names.add(name)
        used |= {name for name in names - own if name.startswith("_") and name[:2] != "__"}
    assert len(used) > 8
    assert used - known == set()


def test_every_method_that_the_connector_overrides_is_checked() -> None:
    from engine.inference.kv_connector import KVConnector

    (base, *_) = KVConnector.__bases__
    (hook,) = [each for each in EVERY if each.target.endswith(":LMCacheMPConnector")]
    overridden = {name for name, of in vars(KVConnector).items() if inspect.isfunction(of)}
    assert {name for name in overridden if hasattr(base, name)} == set(hook.overrides)
