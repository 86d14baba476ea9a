"""A loop without a run's folder: for tests that bring its parts themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from engine.assembly import loop_of
from engine.inference import Decoder, Model
from engine.timeline import Timeline


def evolve(
    *,
    model: Model,
    timeline: Timeline,
    bell: threading.Event,
    serve: Callable[[Decoder], object] = lambda decoder: None,
    **parts: Any,
) -> None:
    """Run a loop to its end; see `engine.assembly.loop_of`.

    Args:
        model: nobody else steps it meanwhile.
        timeline: records its steps.
        bell: the decoder rings it.
        serve: called with the decoder.
        parts: the others of `loop_of`.
    """
    with Decoder(model=model, timeline=timeline, notify=bell.set) as decoder:
        serve(decoder)
        loop_of(model=model, decoder=decoder, timeline=timeline, bell=bell, **parts).run()
