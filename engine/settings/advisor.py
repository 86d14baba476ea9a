"""Who decides what each child tries: the group ``advisor``."""

import re
from typing import Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, model_validator

from engine.section import (
    MOST_TOKENS,
    Count,
    Flag,
    Number,
    Section,
    Text,
    Tokens,
    Whole,
    require,
    section,
)

Implementer = Literal["model", "endpoint"]
ADVISED = ("rewrite", "diff")
"""The operators that carry out an advisor's experiments."""


@section
class EndpointSettings(Section):
    """Who writes the programs where ``advisor.implementer`` is ``endpoint``.

    Task, programs, ideas and experiments are sent there. See ``engine.advisor.endpoint``.

    Attributes:
        url: address of an OpenAI-compatible service, to which ``/chat/completions`` is added.
        model: the name that the service has for the model.
        key_env: name of the environment variable that holds the key; None for no key.
        seconds: how long it may take before an answer is given up.
        at_once: the most requests at a time.
    """

    url: Text | None
    model: Text | None
    key_env: Text | None
    seconds: Number = Field(gt=0, le=86400)
    at_once: Count

    @model_validator(mode="after")
    def _key_stays_secret(self) -> Self:
        if self.url is None:
            return self
        parts = _split(self.url)
        here = parts is not None and parts.hostname in ("127.0.0.1", "::1", "localhost")
        must_be = "an address as https://HOST/v1, without a name, a password or a query"
        is_plain = parts is not None and not (parts.username or parts.query or parts.fragment)
        require(is_plain, "url", self.url, must_be)
        safe = here or self.key_env is None or (parts is not None and parts.scheme == "https")
        must_be = "https where a key is sent to another machine"
        require(safe, "url", self.url, must_be)
        is_name = self.key_env is None or re.fullmatch(r"[A-Za-z_]\w*", self.key_env) is not None
        must_be = "the name of an environment variable, not the key itself"
        require(is_name, "key_env", "***", must_be)
        return self


@section
class AdvisorSettings(Section):
    """Whether an advisor decides what each child tries; see ``engine.advisor``.

    Attributes:
        enabled: whether an advisor is asked.
        implementer: who writes the program: the run's own ``model``, without its adapter, or an
            ``endpoint``.
        answer_tokens: the most tokens of an answer of the advisor.
        repository_tokens: the most tokens of the ideas so far that the advisor is shown, with what
            came of them.
        endpoint: the service, for the implementer of that name.
    """

    enabled: Flag
    implementer: Implementer
    answer_tokens: Whole = Field(ge=128, le=MOST_TOKENS)
    repository_tokens: Tokens
    endpoint: EndpointSettings

    @model_validator(mode="after")
    def _has_its_endpoint(self) -> Self:
        for key in ("url", "model"):
            value = getattr(self.endpoint, key)
            must_be = "given with advisor.implementer=endpoint"
            is_there = self.implementer == "model" or value is not None
            require(is_there, f"endpoint.{key}", value, must_be)
        return self


def _split(url: str) -> SplitResult | None:
    """Return the parts of a web address; None of what is none."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_address and url.isprintable() and " " not in url else None
