"""The versions of what the engine reaches into: as they were read, or others. Imports nothing."""

from collections.abc import Iterator
from importlib import metadata

from engine.checking.finding import Finding, doubtful, good, wrong
from engine.core import UserError
from engine.inference import check_installed
from engine.inference.compat import versions
from engine.settings import RunSettings

_REMEDY = "install the versions that pyproject.toml pins (run `make`)"


def packages(settings: RunSettings) -> Iterator[Finding]:
    """Yield whether the packages that a run needs are here, in versions that the hooks fit."""
    if settings.model.kind == "mutation":
        yield good("packages", "model=mutation needs neither vLLM nor LMCache")
        return
    try:
        check_installed(settings.model.name)
    except UserError as error:
        yield wrong("packages", str(error), where="", remedy="")
        return
    for package, read in versions().items():
        needs = package != "lmcache" or settings.cache.kind == "lmcache"
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            if needs:
                yield wrong("packages", f"{package} is not installed", where="", remedy=_REMEDY)
            continue
        said = f"{package} {version}"
        if version.partition("+")[0] == read:
            yield good("packages", f"{said}, as the hooks into it were read")
        else:
            said += f"; the hooks into it were read against {read}: a run checks each at its start"
            yield doubtful("packages", said, where="", remedy=_REMEDY)
