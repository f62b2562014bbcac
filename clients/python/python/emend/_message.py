"""What the classes of the wire contract have in common: from JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from ._errors import from_failure

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        return lambda decorated: decorated


NONE: Mapping[str, Any] = MappingProxyType({})
"""No entries."""
_classes: dict[str, type[Message]] = {}


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Message:
    """A message of the wire contract. Fields that are not given have the defaults of their class."""

    _kinds: ClassVar[Mapping[str, str]] = NONE
    _renamed: ClassVar[Mapping[str, str]] = NONE

    def __init_subclass__(cls) -> None:
        _classes[cls.__name__] = cls

    def __init__(self, **fields: Any) -> None:
        known = type(self).__annotations__
        for name in fields:
            if name not in known or name.startswith("_"):
                raise TypeError(f"{type(self).__name__} has no field {name!r}")
        self.__dict__.update(fields)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The message with these values, as they are in JSON."""
        made = cls.__new__(cls)
        fields = made.__dict__
        kinds, renamed = cls._kinds, cls._renamed
        for name, value in values.items():
            name = renamed.get(name, name)
            kind = kinds.get(name)
            fields[name] = value if kind is None else _read(kind, value)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Its fields that were given, as they are in JSON."""
        names = {python: name for name, python in self._renamed.items()}
        return {
            names.get(name, name): to_json(value)
            for name, value in self.__dict__.items()
            if value is not None
        }

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} can't be changed: make another")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._fields())

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        default = type(self)
        shown = (
            f"{name}={getattr(self, name)!r}"
            for name in self._fields()
            if getattr(self, name) != getattr(default, name)
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def _fields(cls) -> list[str]:
        return [name for name in cls.__annotations__ if not name.startswith("_")]


def _read(kind: str, value: Any) -> Any:
    if kind.endswith("[]"):
        one = kind[:-2]
        return tuple(_read(one, item) for item in value)
    if kind.endswith("{}"):
        one = kind[:-2]
        return {name: _read(one, item) for name, item in value.items()}
    if value is None:
        return None
    if kind == "Timestamp":
        return _time(value)
    if kind == "Duration":
        return timedelta(seconds=float(value[:-1]))
    if kind == "ItemStatus":
        return from_failure(value)
    return _classes[kind].from_dict(value)


def _time(text: str) -> datetime:
    """A time in RFC 3339, to the microsecond."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    at = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc)
    return at.replace(microsecond=int(fraction[:6].ljust(6, "0"))) if fraction else at


def to_json(value: Any) -> Any:
    """A value of a request as it is in JSON."""
    if isinstance(value, Message):
        return value.to_dict()
    if isinstance(value, datetime):
        # Without a time zone it is local time, as everywhere in Python.
        at = value.astimezone(timezone.utc).replace(tzinfo=None)
        return at.isoformat(timespec="microseconds") + "Z"
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.6f}s"
    if isinstance(value, Mapping):
        return {name: to_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value
