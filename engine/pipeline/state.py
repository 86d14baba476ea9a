"""A run's state: its history, and a search that knows it, as a fold of the recorded events.

The order of the log is the truth: the search is told each event as it is recorded, and a run that
goes on tells the events again in the same order, so it stands where the other one stood.

Does not cover where events come from: ``engine.loop`` records them, ``engine.beginning`` reads
them.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable

from engine.core import INITIAL, Call, Child, Failure, Fill, Hint, Tactics, Verdict
from engine.search.search import Search
from engine.search.widths import IterationOutcome
from engine.store import Recorded, RunHistory
from engine.syntax import read

_FIRST_MIGRANT = 1 << 40  # place of the first, behind all seeds and fills


class RunState:
    """What is known of a run; `fold` every event into it once it is recorded."""

    def __init__(self, *, history: RunHistory, search: Search, workers: int) -> None:
        """Begin a run.

        Args:
            history: with no event.
            search: that knows nothing.
            workers: evaluators.
        """
        self.history = history
        self.search = search
        self._workers = workers
        self._open: defaultdict[int, deque[Call]] = defaultdict(deque)  # by island
        self._awaited: dict[int, int] = {}  # by iteration: children that are not judged
        self._last: dict[int, int] = {}  # by island: its last call's iteration
        self._finished: Counter[int] = Counter()  # iterations, by island
        self._bars: dict[str, float] = {}  # by parent: the best score of its fills

    def fold(self, recorded: Recorded) -> None:
        """Take one event in."""
        self.history.fold(recorded)
        event = recorded.event
        if isinstance(event, Call):
            self.search.begin(event)
            self._open[event.island].append(event)
            self._awaited[event.iteration] = event.k
            self._last[event.island] = event.iteration
        elif isinstance(event, Child):
            if event.refusal is None:
                self.search.admit(event, self.history.calls[event.iteration])
            else:
                self._judged(event)
        elif isinstance(event, Verdict):
            child = self.history.children.get(event.candidate)
            fill = self.history.fills.get(event.candidate)
            if fill is not None:
                if event.evaluation.failure is not Failure.STARVED:  # or a child may do better
                    self.search.know(fill.id, fill.program)
                self._join(event)
            elif event.candidate in self.history.migrants:
                self._arrive(event)
            elif child is None:
                self._begin_with(event)
            else:
                self.search.tell(event.candidate, event.evaluation, cell=event.cell)
                self._judged(child)
        elif isinstance(event, Fill):
            self.search.expect(event.id, event.program)
        elif isinstance(event, Hint):
            self.search.heed(event)
        elif isinstance(event, Tactics):
            self.search.advise(event)

    def is_open(self, island: int) -> bool:
        """Whether an iteration of the island has begun whose verdicts are not all in."""
        return bool(self._open[island])

    def finished(self, island: int) -> int:
        """Return how many iterations of an island are over."""
        return self._finished[island]

    def last_call(self, island: int) -> int:
        """Return the iteration of the island's last call; -1 before the first."""
        return self._last.get(island, -1)

    def turn(self) -> int | None:
        """Return the island that calls next; None while it is nobody's turn."""
        free = [i for i in range(self.search.islands) if not self.is_open(i)]
        return self.next_of(self.search.scheduled(free))

    def next_of(self, islands: Iterable[int]) -> int | None:
        """Return which of ``islands`` may call next; None of none.

        They take turns: it is the one whose last call was recorded first.
        """
        return min(sorted(islands), key=self.last_call, default=None)

    def _begin_with(self, verdict: Verdict) -> None:
        program = read(self.history.program_of(verdict.candidate))
        assert program is not None  # or the run had not begun
        seed = None if verdict.candidate == INITIAL else self.history.seeds[verdict.candidate]
        self.search.begin_with(
            verdict.candidate,
            program,
            score=verdict.score,
            index=0 if seed is None else 1 + seed.number,
            islands=None if seed is None else seed.islands,
            cell=verdict.cell,
        )

    def _join(self, verdict: Verdict) -> None:
        """Let a fill be a parent if it is better than its own and all variants of that before."""
        fill, score = self.history.fills[verdict.candidate], verdict.score
        if not fill.joins:
            return
        bar = self._bars.get(fill.parent, self.history.verdicts[fill.parent].score)
        assert bar is not None  # or it had been nobody's parent
        if score is None or not self.search.direction.better(score, than=bar):
            return
        self._bars[fill.parent] = score
        index = 1 + len(self.history.seeds) + fill.number
        self.search.join(
            fill.id, fill.program, score=score, index=index, island=fill.island, cell=verdict.cell
        )

    def _arrive(self, verdict: Verdict) -> None:
        """Let a migrant be a parent on the island of this log."""
        migrant, score = self.history.migrants[verdict.candidate], verdict.score
        assert score is not None  # or nobody had sent it
        self.search.join(
            migrant.id,
            migrant.program,
            score=score,
            index=_FIRST_MIGRANT + migrant.number,
            island=0,
            cell=verdict.cell,
        )

    def _judged(self, child: Child) -> None:
        """Finish the iterations that are over with a child, in the order of their island's."""
        self._awaited[child.iteration] -= 1
        calls = self._open[self.history.calls[child.iteration].island]
        while calls and not self._awaited[calls[0].iteration]:
            call = calls.popleft()
            del self._awaited[call.iteration]
            improved = self.search.improved(call.island, call.iteration)
            self.search.finish(
                outcome_of(call, self.history, workers=self._workers, improved=improved)
            )
            self._finished[call.island] += 1


def outcome_of(call: Call, history: RunHistory, *, workers: int, improved: int) -> IterationOutcome:
    """Return the outcome of a call whose children are all judged.

    Args:
        call: of the iteration.
        history: of the run.
        workers: evaluators.
        improved: how many of its children improved their island.
    """
    children = [history.children[f"{call.iteration}.{i}"] for i in range(call.k)]
    computed = [child.prompt_tokens - child.cached_prompt_tokens for child in children]
    generated = [child.generated_tokens for child in children]
    verdicts = [history.verdicts[child.id] for child in children if child.refusal is None]
    return IterationOutcome(
        iteration=call.iteration,
        island=call.island,
        parent=call.parent,
        children=len(children),
        improved=improved,
        model_seconds=sum(child.llm_seconds for child in children),
        computed_tokens=sum(computed),
        repeated_tokens=sum(computed) - max(computed),
        decode_steps=max(generated),
        generated_tokens=sum(generated),
        evaluation_seconds=sum(each.evaluation.seconds for each in verdicts) / workers,
    )
