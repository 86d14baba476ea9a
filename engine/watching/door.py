"""What watches a run, by its settings. Nothing is imported for what is off."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from engine.core import Event
from engine.settings import RunSettings
from engine.store import RunHistory

Tell = Callable[[Sequence[Event]], object]


def check_watching(settings: RunSettings) -> None:
    """Check that what is to watch a run can: before minutes go by.

    Raises:
        UserError: a port is taken, a file can't be written, or a package is missing.
    """
    if settings.prometheus is not None:
        from engine.watching.prometheus import check_port

        check_port(settings.prometheus)
    if settings.opentelemetry is not None:
        from engine.watching.otlp import check_target

        check_target(settings.opentelemetry)


@contextmanager
def watched(
    settings: RunSettings,
    *,
    run: str,
    session: int,
    history: RunHistory,
    first: Sequence[Event],
) -> Iterator[Tell]:
    """Hold what watches a session of a run; yield what is told the events that are on disk.

    Args:
        settings: the run's.
        run: its name.
        session: its number.
        history: what the log adds up to, which goes on with the run.
        first: what the session has recorded already.

    Raises:
        UserError: as `check_watching`.
    """
    watchers: list[Tell] = []
    with ExitStack() as stack:
        if settings.log == "json":
            from engine.watching.json_lines import EventLines

            lines = EventLines(run=run, session=session)
            lines(first)
            watchers.append(lines)
        if settings.prometheus is not None:
            from engine.watching.prometheus import serving

            figures = stack.enter_context(serving(settings, run=run, history=history))
            watchers.append(figures.take)
        if settings.opentelemetry is not None:
            from engine.watching.otlp import exporting

            watchers.append(
                stack.enter_context(exporting(settings, run=run, session=session, history=history))
            )

        def tell(events: Sequence[Event]) -> None:
            for watcher in watchers:
                watcher(events)

        yield tell
