"""The outposts of a run: as many as there are to be, each used by one worker."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from engine.cluster.on_ray import RayWorker, leaving
from engine.cluster.outposts.outpost import cores_of
from engine.cluster.outposts.ray_outpost import RayOutpost
from engine.cluster.outposts.spread import OutpostLost
from engine.core import UserError

_MOST_DEATHS = 5  # in a row
_log = logging.getLogger("brood")


class Outposts:
    """See the module. One thread uses it."""

    def __init__(self, make: Callable[[], RayOutpost], *, wanted: int) -> None:
        """Have none yet.

        Args:
            make: asks for one.
            wanted: how many there are to be.
        """
        self._make = make
        self._wanted = wanted
        self._users: dict[RayOutpost, RayWorker | None] = {}  # None before anybody uses it
        self._deaths = 0

    def turn(self, workers: Sequence[RayWorker]) -> None:
        """Replace those that are lost, must go or have lost their worker; let one use each new one.

        One whose worker is lost may still be answering that one, and what it answers would be lost
        to the next. So it is not handed on.

        Args:
            workers: that are ready.

        Raises:
            UserError: outposts can't be started.
        """
        gone = leaving()
        for outpost, user in [*self._users.items()]:
            try:
                outpost.check()
            except OutpostLost as error:
                self._bury(outpost, error)
                continue
            if outpost.node in gone or (user is not None and user not in workers):
                outpost.kill()
                del self._users[outpost]
        while len(self._users) < self._wanted:
            self._start()
        for outpost, user in self._users.items():
            if workers and user is None:
                uses = Counter(map(id, self._users.values()))
                worker = min(workers, key=lambda each: uses[id(each)])
                self._users[outpost] = worker
                worker.tell("use", outpost)

    def close(self) -> None:
        """End all of them."""
        for outpost in self._users:
            outpost.kill()
        self._users.clear()

    def _start(self) -> None:
        outpost = self._make()
        try:
            _, cores = outpost.place()
            outpost.start(cores_of(len(self._users), of=self._wanted, cores=cores))
        except OutpostLost as error:
            self._bury(outpost, error)
            return
        self._deaths = 0
        self._users[outpost] = None

    def _bury(self, outpost: RayOutpost, error: OutpostLost) -> None:
        outpost.kill()
        self._users.pop(outpost, None)
        self._deaths += 1
        _log.warning("an outpost is lost (%s)", error)
        if self._deaths >= _MOST_DEATHS:
            raise UserError(f"outposts die again and again: {error}") from error
