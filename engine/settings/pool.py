"""Programs that a run begins with: the group ``pool``."""

from typing import Literal

from engine.section import Count, Section, Share, section


@section
class PoolSettings(Section):
    """What a run starts from besides the problem's initial program; see ``engine.pool``.

    Attributes:
        sources: folders of programs, or of other runs; ``shipped`` for the problem's own pool.
        most_of_run: how many programs of a run are taken, the best ones.
        assignment: which programs belong together before they are mixed: those that are alike, by
            k-means, or any, at random (TurboEvolve, section 4.3).
        mixing: d, the share of a cluster that is exchanged for good programs of others.
        elites: rho, the share of it that is not.
    """

    sources: tuple[str, ...]
    most_of_run: Count
    # With a value of its own, as settings of runs from before it have none.
    assignment: Literal["kmeans", "random"] = "kmeans"
    mixing: Share
    elites: Share
