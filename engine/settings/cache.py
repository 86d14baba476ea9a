"""Where the KV of prompts is kept beyond a process: the group ``cache``."""

import re
from typing import Literal, Self

from pydantic import model_validator

from engine.section import Gigabytes, Section, require, section


@section
class CacheSettings(Section):
    """Where the KV of prompts outlives the process that computed it.

    Attributes:
        kind: ``none``, or ``lmcache`` for an LMCache server beside the run.
        memory_gb: the server's memory tier, in GiB; less where shared memory is short.
        disk_gb: the disk tier, in GiB, over all runs that share the folder.
        folder: of the disk tier; None for ``brood/kv`` in the user's cache folder.
        server: ``127.0.0.1:PORT`` of a server that runs already, whose tiers are its own; None to
            start one.
    """

    kind: Literal["none", "lmcache"]
    memory_gb: Gigabytes
    disk_gb: Gigabytes
    folder: str
    server: str | None

    @model_validator(mode="after")
    def _server_is_on_this_machine(self) -> Self:
        must_be = "127.0.0.1:PORT of a server on this machine, or null to start one"
        require(self.server is None or _is_loopback(self.server), "server", self.server, must_be)
        return self


def _is_loopback(server: str) -> bool:
    found = re.fullmatch(r"127\.0\.0\.1:([1-9][0-9]{0,4})", server)
    return found is not None and int(found[1]) < 1 << 16
