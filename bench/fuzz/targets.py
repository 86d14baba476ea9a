"""All targets by name."""

from __future__ import annotations

from collections.abc import Mapping

from bench.fuzz import native, problems, runs, sandbox, wire
from bench.fuzz.target import Target

TARGETS: Mapping[str, type[Target]] = {
    target.name: target
    for module in (wire, sandbox, native, problems, runs)
    for target in module.TARGETS
}
