"""Stand-ins for the other side's objects, types and exceptions.

A stand-in's type has the name and the special methods of the object's own, as far as `DUNDERS`
has them, so that ``callable``, ``len`` and ``isinstance`` of two objects of one type work. The
other side chooses only among these methods; their code is here.
"""

import builtins
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from engine.judge.link import Link

DUNDERS = frozenset(
    f"__{name}__"
    for name in (
        *("call", "len", "iter", "next", "getitem", "setitem", "contains", "enter", "exit"),
        *("bool", "int", "float", "complex", "index", "str", "array", "abs", "neg", "pos"),
        *("lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv"),
        *("rtruediv", "floordiv", "mod", "pow", "matmul"),
    )
)
"""The special methods that a stand-in may have."""

_NAME_CHARACTERS = 100
_MESSAGE_CHARACTERS = 4000


class Raised(RuntimeError):
    """What the other side's code raised.

    Attributes:
        line: of the program, where it was raised; None if that is not known.
        traceback: of the program's own frames.
    """

    line: int | None = None
    traceback: str = ""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def raised(answer: Any) -> Raised:
    """Return the exception for what the other side says that it raised.

    It is of a type of the same name, and a subclass of the built-in exception of that name.
    """
    name, message, line, traceback = "Error", "", None, ""
    if type(answer) is list and len(answer) == 4:
        name, message, line, traceback = answer
    name = name if type(name) is str and name.isidentifier() else "Error"
    text = str(message)[:_MESSAGE_CHARACTERS] if type(message) is str else ""
    if type(line) is int:
        text += f" (line {line} of the program)"
    base = getattr(builtins, name, None)
    bases: tuple[type, ...] = (Raised,)
    if isinstance(base, type) and issubclass(base, Exception) and base is not RuntimeError:
        bases = (Raised, base)
    try:
        error: Raised = type(name[:_NAME_CHARACTERS], bases, {"__module__": "builtins"})(text)
    except TypeError:  # a Unicode error, or a group, is made of more than a text
        error = type(name[:_NAME_CHARACTERS], (Raised,), {"__module__": "builtins"})(text)
    error.line = line if type(line) is int else None
    error.traceback = str(traceback)[-_MESSAGE_CHARACTERS:] if type(traceback) is str else ""
    return error


class RemoteType(type):
    """The type of types that stand for the other side's: calling one makes an object there."""

    _link: "Link"
    _number: int

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._link.ask("call", cls, list(args), kwargs)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith(("__", "_brood")):
            raise AttributeError(name)
        return _read(cls._link, cls, cls._number, name)


class Remote:
    """An object of the other side."""

    _brood_link: ClassVar["Link"]

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_brood")):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return _read(self._brood_link, self, self.__dict__["_brood_number"], name)

    def __setattr__(self, name: str, value: object) -> None:
        if self._brood_link.local_attributes:
            self.__dict__[name] = value
        else:
            self._brood_link.ask("assign", self, name, value)

    def __repr__(self) -> str:
        shown = {k: v for k, v in self.__dict__.items() if not k.startswith("_brood")}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} of the other process can't be pickled")


def stand_in(kind: RemoteType, link: "Link", number: int) -> Any:
    """Return a new stand-in of an object, by its type's and its number."""
    made: Any = object.__new__(kind)  # type: ignore[arg-type]  # its own call asks over there
    made.__dict__["_brood_number"] = number
    return made


def number_of(value: object, link: "Link") -> int | None:
    """Return the number of a stand-in of this link's other side; None for anything else."""
    if isinstance(value, RemoteType):
        return value._number if value._link is link else None
    kind: type = type(value)
    if isinstance(kind, RemoteType) and kind._link is link:
        number: int = value.__dict__["_brood_number"]
        return number
    return None


def stand_in_type(link: "Link", number: int, name: str, dunders: Sequence[Any]) -> RemoteType:
    """Return the type of stand-ins for objects of one type of the other side."""
    methods: dict[str, Any] = {
        each: _special(link, each)
        for each in dunders
        if type(each) is str and each in DUNDERS and (each == "__call__" or link.allows(each))
    }
    title = name[:_NAME_CHARACTERS] if name.isidentifier() else "Object"
    made = RemoteType(title, (Remote,), {**methods, "__module__": "program"})
    type.__setattr__(made, "_link", link)
    type.__setattr__(made, "_number", number)
    type.__setattr__(made, "_brood_link", link)
    return made


def field(name: str, at: int) -> property:
    """Return a field of the other side's named tuples; a function in it is used like a method."""

    def read(values: tuple[Any, ...]) -> Any:
        value = values[at]
        kind = value if isinstance(value, type) else type(value)
        if isinstance(kind, RemoteType) and callable(value):
            kind._link.use(name, of=type(values).__name__)
        return value

    return property(read)


def _special(link: "Link", name: str) -> Callable[..., Any]:
    if name == "__call__":
        return lambda self, *args, **kwargs: link.ask("call", self, list(args), kwargs)
    if name == "__array__":  # NumPy asks for a dtype too, which it can change itself
        return lambda self, *args, **kwargs: link.ask("special", self, name, [])
    if name == "__exit__":  # an exception and its frames stay on their side
        return lambda self, *args: link.ask("special", self, name, [None, None, None])
    return lambda self, *args: link.ask("special", self, name, list(args))


def _read(link: "Link", owner: Any, number: int, name: str) -> Any:
    found = link.attribute(owner, number, name)
    if found is not None:
        return found[0]
    method = partial(link.ask, "method", owner, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        return method(list(args), kwargs)

    call.__name__ = call.__qualname__ = name
    if not isinstance(owner, type):
        owner.__dict__[name] = call
    return call
