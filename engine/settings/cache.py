"""Where the KV of prompts is kept beyond a process: the group ``cache``."""

import re
from typing import Literal, Self

from pydantic import model_validator

from engine.section import Count, Gigabytes, Section, require, section


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
        server_pid: process id of ``server``, which is killed where it fails: beside a GPU it would
            go on writing into the engine's memory. None to leave it alone, as a run that goes on
            does where it is not given anew.
        remote: ``redis://HOST:PORT`` of a Redis or Valkey server that machines share, as a third
            tier; None for none. Its user and password are LMCACHE_RESP_USERNAME and
            LMCACHE_RESP_PASSWORD in the environment.
    """

    kind: Literal["none", "lmcache"]
    memory_gb: Gigabytes
    disk_gb: Gigabytes
    folder: str
    server: str | None
    server_pid: Count | None = None
    remote: str | None = None

    @model_validator(mode="after")
    def _server_is_on_this_machine(self) -> Self:
        must_be = "127.0.0.1:PORT of a server on this machine, or null to start one"
        require(self.server is None or _is_loopback(self.server), "server", self.server, must_be)
        has_server = self.server_pid is None or self.server is not None
        require(has_server, "server_pid", self.server_pid, "null unless cache.server is given")
        return self

    @model_validator(mode="after")
    def _remote_is_an_address(self) -> Self:
        address = "redis://HOST:PORT of a Redis or Valkey server, with no password in it, or null"
        is_one = self.remote is None or _is_remote(self.remote)
        require(is_one, "remote", self.remote, address)
        is_ours = self.remote is None or self.server is None
        require(is_ours, "remote", self.remote, "null where cache.server has tiers of its own")
        return self


def _is_loopback(server: str) -> bool:
    found = re.fullmatch(r"127\.0\.0\.1:([1-9][0-9]{0,4})", server)
    return found is not None and int(found[1]) < 1 << 16


def _is_remote(address: str) -> bool:
    found = re.fullmatch(r"redis://([^\s/@:\[\]]+|\[[0-9a-fA-F:.]+\]):([1-9][0-9]{0,4})", address)
    return found is not None and int(found[2]) < 1 << 16
