"""Settings of runs that earlier versions began, as near as this version has them.

They are for whoever reads a run: a report, the dashboard, a pool. A run goes on only with settings
that this version has as they are (`engine.config.load`).
"""

from collections.abc import Mapping
from typing import Any

from engine.settings import GUIDED

Values = dict[str, Any]


def as_now(values: Values, *, now: Values) -> Values:
    """Return the values of ``config.yaml`` with the keys of this version, and no others.

    Args:
        values: as an earlier version wrote them.
        now: of a run of this version, for the keys that there were none of. Nothing in it is
            switched on that is newer than those values.
    """
    return _with_keys(_combined(_renamed(values)), now)


def _with_keys(values: Values, now: Values) -> Values:
    found = {}
    for key, otherwise in now.items():
        given = values.get(key, otherwise)
        # Who has a policy has its parameters, and the names of operators are values themselves.
        is_open = isinstance(given, dict) and ("policy" in given or key == "operators")
        if isinstance(otherwise, dict) and isinstance(given, dict) and not is_open:
            given = _with_keys(given, otherwise)
        found[key] = given
    return found


def _renamed(values: Values) -> Values:
    """Return the values with today's names for what had others up to schema 6."""
    renamed = {
        name: dict(each) if isinstance(each, dict) else each for name, each in values.items()
    }
    width, search = renamed.get("width", {}), renamed.get("search", {})
    pipeline, islands = renamed.get("pipeline", {}), renamed.get("islands", {})
    if "kind" in width:
        policy = width.pop("kind")
        renamed["width"] = {"policy": policy, **(width if policy == "cost_aware" else {})}
    if isinstance(search.get("novelty"), float):
        search["novelty"] = {"policy": "cosine", "threshold": search["novelty"]}
    if "operators_policy" in search:
        search["mix"] = {"policy": search.pop("operators_policy")}
        search["parent"] = _parent(search.get("parent", {}))
    if isinstance(pipeline.get("speculate"), str):
        pipeline["speculate"] = pipeline["speculate"] != "false"
    if islands.get("choice") == "ucb":
        islands["schedule"] = {"policy": "adaevolve"}
    return renamed


def _combined(values: Values) -> Values:
    """Return the values without what can't be combined any more, which changes them."""
    tactics, guidance = values.get("tactics", {}), values.get("guidance", {})
    if tactics.get("when", "none") != "none":
        values["pipeline"]["speculate"] = False
    operators = values.get("search", {}).get("operators", {})
    if guidance.get("enabled") and not any(map(operators.get, GUIDED)):
        guidance["enabled"] = False  # it stood in no prompt
    return values


_OF_PARENT: Mapping[str, tuple[str, ...]] = {
    "hybrid": ("p_elite", "p_uniform", "gamma", "epsilon"),
    "power": ("gamma", "epsilon"),
}


def _parent(parent: Values) -> Values:
    """Return a parent policy without the parameters of the others."""
    own = _OF_PARENT.get(str(parent.get("policy")), ())
    return {key: value for key, value in parent.items() if key in ("policy", *own)}
