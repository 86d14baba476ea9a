"""A candidate's own process, from behind the walls to its end: read the cases, run, answer.

Does not cover: the walls, which stand before this begins (``native/walls.cpp``), what the program
does (``program``), and when it is killed (``native/zygote.cpp``).
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Sequence
from typing import NoReturn

from engine.core import Case
from engine.evaluation import memory, wire
from engine.evaluation.program import run

EXIT_INTERNAL = 70

_INPUT, _RESULT, _DONE = 3, 4, 5  # as in native/zygote.hpp


def run_child(program: bytes, entry_point: str, cases: Sequence[Case] | None) -> NoReturn:
    """Run a program, write its result, say so, and never return.

    Args:
        program: its text, in UTF-8.
        entry_point: the function that it defines.
        cases: the calls to make; None to read them from this process's own input.
    """
    try:
        room = memory.map_result(_RESULT)  # now: a program may use up memory and descriptors
        if cases is None:
            cases = wire.decode_cases(memory.read_input(_INPUT))
        os.close(_INPUT)  # all zygotes have this file, and reading leaves a time on it
        result = run(program.decode(errors="surrogatepass"), entry_point, cases)
        memory.write_result(room, result)
        os.write(_DONE, result[:1])
        signal.pause()  # the zygote asks the kernel for the peak memory, and kills
    except BaseException:  # whatever it is, this process must not go on as a second zygote
        traceback.print_exc()
    finally:
        os._exit(EXIT_INTERNAL)
