"""An executor that does its work at once, in the thread that submits it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

T = TypeVar("T")


class Inline(Executor):
    """Stands for the worker processes where it does not matter who does the work."""

    def submit(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        result: Future[T] = Future()
        try:
            result.set_result(work(*args, **kwargs))
        except Exception as error:
            result.set_exception(error)
        return result
