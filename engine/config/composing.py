"""Hydra's groups and a command line become one nested mapping, and that the settings of a run."""

import difflib
import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from engine.config.overrides import parsed, values_of
from engine.config.places import in_full
from engine.core import UserError
from engine.preset import settle
from engine.problem import shipped
from engine.settings import RunSettings, settings_of

_CONF = Path(__file__).parents[1] / "conf"
GROUPS = ("problem", "model", "cache", "learning", "fill", "cluster", "method")
"""What can be chosen as a whole, by name; see `options`."""
_SHOWN = 60  # characters of a key that there is not
_NEAREST = 3
_MOST_OWN = 9
# Somebody else knows which keys there are below these: vLLM, or a registry of policies.
_OPEN = (
    "model.engine.",
    "search.cells.",
    "search.parent.",
    "search.mix.",
    "search.novelty.",
    "search.inspirations.",
    "search.operators.",
    "islands.topology.",
    "islands.schedule.",
    "width.",
)


def resolve(arguments: Sequence[str]) -> RunSettings:
    """Return the settings that ``key=value`` arguments make of the defaults.

    Raises:
        UserError: an unknown key or value, naming valid ones, or a value out of bounds.
    """
    overrides = parsed(arguments)
    given = {override.key_or_group: override.value() for override in overrides}
    chosen = [_known(override) for override in overrides]
    if given.get("model.path") is not None and "model" not in given:
        chosen.append("model=derived")
    without = [each for each in chosen if not each.startswith("method=")]
    plain = composed(without)
    values = settle(plain if without == chosen else composed(chosen), plain, given=given)
    values = in_full(values, given)
    model = values["model"]
    by_path = "model.path" in given and model["path"] is not None
    model["name"] = Path(model["path"]).name if by_path else given.get("model", "smollm2")
    return settings_of(values)


def expand(arguments: Sequence[str]) -> list[list[str]]:
    """Return the jobs of a sweep: one list of arguments for each combination of values.

    Raises:
        UserError: an argument is not of the form key=value.
    """
    values = {}  # by key, the last one given; keys of a group given together are told apart
    for override in parsed(arguments):
        key, value = override.get_key_element(), override.value()
        within = tuple(value) if isinstance(value, dict) else ()
        values[key, within] = [f"{key}={each}" for each in values_of(override)]
    return [list(job) for job in itertools.product(*values.values())]


def composed(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the defaults with some changes, before what follows from this machine.

    Args:
        arguments: as Hydra takes them.

    Raises:
        UserError: Hydra refuses one.
    """
    for name, folder in shipped().items():
        ConfigStore.instance().store(group="problem", name=name, node={"path": str(folder)})
    try:
        with initialize_config_dir(config_dir=str(_CONF), version_base="1.3"):
            config = compose(config_name="config", overrides=list(arguments))
        values: Any = OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(" ".join(str(error).split())) from error
    else:
        return dict(values)


def options(group: str) -> list[str]:
    """Return the names that one of `GROUPS` can be chosen by."""
    if group == "problem":
        return sorted(shipped())
    return sorted(path.stem for path in (_CONF / group).glob("*.yaml"))


def _known(override: Override) -> str:
    """Return an argument as Hydra takes it.

    Raises:
        UserError: it has several values, or a key or value that there is not.
    """
    key = override.key_or_group + (f"@{override.package}" if override.package else "")
    given = str(override.input_line)
    if override.is_sweep_override():
        raise UserError(f"{given!r} gives several values; add --multirun to run each of them")
    if override.type is not OverrideType.CHANGE:
        raise UserError(f"{given!r} adds or removes a key; only key=value is taken")
    if key in GROUPS:
        if str(override.value()) not in options(key):
            raise UserError(
                f"unknown {key} {override.value()!r}; valid: {', '.join(options(key))}"
                + (" (or give problem.path=FOLDER)" if key == "problem" else "")
            )
        return given
    if key not in (*_valid_keys(), "search.operators") and not key.startswith(_OPEN):
        raise UserError(
            f"unknown key {key[:_SHOWN]!r}; {_meant(key)}docs/reference.md has all keys"
        )
    return f"++{given}"  # it may add a key to a mapping


def _meant(key: str) -> str:
    """Return what may be meant by a key that there is not, in words that more words follow."""
    own = [each.removeprefix(f"{key}.") for each in _valid_keys() if each.startswith(f"{key}.")]
    if own:
        more = "" if len(own) <= _MOST_OWN else f" and {len(own) - _MOST_OWN} more"
        return f"it is a group; give {key}.KEY, KEY one of {', '.join(own[:_MOST_OWN])}{more}; "
    valid = [*GROUPS, *_valid_keys()]
    inner = [each for each in valid if key and each.endswith(f".{key}")]  # its section forgotten
    close = list(dict.fromkeys([*inner, *difflib.get_close_matches(key, valid)]))[:_NEAREST]
    if not close:
        close = difflib.get_close_matches(key, valid, cutoff=0.01)
        return f"the nearest are {', '.join(close)}; " if close else ""
    first, *others = close
    return f"did you mean {first}? " + (f"or {', '.join(others)}? " if others else "")


@functools.cache
def _valid_keys() -> tuple[str, ...]:
    return tuple(_keys(composed([])))


def _keys(values: Any, prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _keys(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"
