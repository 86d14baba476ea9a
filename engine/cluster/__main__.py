"""``python -m engine.cluster ACTION``: the machines that runs with cluster=ray may use.

    python -m engine.cluster start address=10.0.0.1:6379       # the same command on all machines
    python -m engine.cluster show address=10.0.0.1:6379
    python -m engine.cluster drain 10.0.0.3 address=10.0.0.1:6379
    python -m engine.run cluster=ray cluster.address=10.0.0.1:6379 …

``address=HOST:PORT`` is the head's. ``start`` makes the head of the machine whose address it is,
and lets any other machine join; block=true stays until Ray ends there, as Slurm and containers
want it. The machines share a token: copy ``~/.ray/auth_token`` from the head. ``show`` lists
machines and what runs on them. ``drain`` lets a machine go, by its address, name or id: islands
and evaluators move to others, and after seconds=300 what is left there is ended. ``ray stop``
ends Ray on the machine where it is typed.
Exit codes: 0, or 2 for bad input.
"""

import sys
from collections.abc import Sequence

from engine import config
from engine.arguments import Arguments, execute
from engine.cluster.before_ray import prepare_ray
from engine.core import UserError
from engine.settings import ClusterSettings

_SECONDS = 300
_ROW = "{:<16} {:<20} {:<9} {:>5} {:>4}  {:<8} {}"


def main(arguments: Sequence[str]) -> int:
    """Do what ``arguments`` ask for; return the exit code."""
    return execute(_act, arguments, keys=("address", "seconds", "block"), usage=__doc__ or "")


def _act(arguments: Arguments) -> int:
    prepare_ray()
    action, *rest = arguments.rest or [""]
    if action not in ("start", "show", "drain"):
        raise UserError(f"{action[:50]!r} is no action; give start, show or drain")
    if len(rest) != (action == "drain"):
        raise UserError(
            "drain needs one machine, as in: drain 10.0.0.3 address=10.0.0.1:6379"
            if action == "drain"
            else f"{action} takes no {rest[0][:50]!r}"
        )
    if "address" not in arguments.options:
        raise UserError("give the head's address=HOST:PORT")
    address = arguments.options["address"]
    settings = config.resolve(["cluster=ray", f"cluster.address={address}"]).cluster
    if action == "start":
        return _start(settings, block=arguments.flag("block"))
    from engine.cluster.machines import drain, machines, matching
    from engine.cluster.on_ray import open_ray

    with open_ray(settings):
        found = machines()
    if action == "show":
        print(_ROW.format("address", "name", "id", "cores", "gpus", "", "workers and outposts"))
        for each in found:
            there = ", ".join(f"{name} ({n})" for name, n in sorted(each.processes.items()))
            state = "leaving" if each.is_leaving else ""
            row = (each.address, each.name, each.id[:8], each.cores, each.gpus, state, there)
            print(_ROW.format(*row).rstrip())
        return 0
    (wanted,) = rest
    machine = matching(found, wanted)
    seconds = arguments.number("seconds", _SECONDS)
    drain(machine, address=address, seconds=seconds)
    print(f"{machine.address} ({machine.name}) takes nothing new, and is let go in {seconds} s")
    return 0


def _start(settings: ClusterSettings, *, block: bool) -> int:
    from engine.cluster.machines import start

    assert settings.address is not None
    print(start(settings.address, block=block))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
