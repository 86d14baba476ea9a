"""What a proposal shows of earlier programs besides its parent: others, or its ancestors."""

from collections.abc import Callable

from engine.core import Call, Candidate, Direction, Turn
from engine.search.choice import Chance, Choice
from engine.search.island import Island
from engine.search.parents import EXPLORE, FIRST
from engine.search.population import Population
from engine.search.window import best_that_fit, first_that_fit
from engine.settings import PromptSettings, SearchSettings


class Context:
    """Chooses what is shown, as the prompts' layout has it."""

    def __init__(
        self,
        settings: SearchSettings,
        *,
        prompts: PromptSettings,
        direction: Direction,
        size: Callable[[str], int],
    ) -> None:
        """Keep nothing.

        Args:
            settings: whether there are inspirations, and how many failed attempts are shown.
            prompts: the layout, and how many other programs are to be shown.
            direction: of the scores.
            size: of a program's text, in the tokens that ``prompts`` counts.
        """
        self._failures = settings.failures
        self._prompts = prompts
        self._direction = direction
        self._size = size
        inspirations = settings.inspirations
        self._inspirations = (
            None if inspirations is None else inspirations.make(direction=direction)
        )

    def lineage(self, choice: Choice | Call, population: Population) -> tuple[Turn, ...]:
        """Return the parent's ancestors and what became of their children, the oldest first."""
        if self._prompts.layout == "transcript":
            return population.lineage(choice.parent, failures=self._failures)
        if self._prompts.layout == "ancestors" and not _begins_afresh(choice):
            return population.lineage(choice.parent, failures=0, most=self._prompts.ancestors)
        return ()

    def history(self, choice: Choice | Call, own: Island, chance: Chance) -> tuple[Candidate, ...]:
        """Return the island's other programs that there is room for."""
        layout = self._prompts.layout
        if layout == "transcript" or (layout == "ancestors" and _begins_afresh(choice)):
            return ()
        room, but = self._prompts.history_tokens, (choice.parent, choice.partner)
        if self._inspirations is not None:
            found = self._inspirations.choose(
                own.eligible,
                but=but,
                key=chance.inspirations,
                draw=lambda of, key: own.parents.choose(of, u=chance.parent[0], key=key).candidate,
            )
            shown = first_that_fit(found, room=room, size=self._size)
            return shown[::-1] if layout == "classic" else shown  # it leaves out its first ones
        if layout == "stable":
            return own.window.shown
        others = [each for each in own.candidates if each.id not in but]
        return best_that_fit(others, room=room, size=self._size, direction=self._direction)


def _begins_afresh(choice: Choice | Call) -> bool:
    return choice.rule in (EXPLORE, FIRST)
