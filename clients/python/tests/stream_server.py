"""A learning service that sends nodes what it is told to, and keeps what they say: for messages that a real one never sends, or not
at will."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Union

import grpc

_SERVICE = "emend.learning.v1.SubscriptionService"
_VARINT, _FIXED64, _BYTES = 0, 1, 2

Cursor = dict[str, Any]


class Fixed64(NamedTuple):
    """A field of eight bytes."""

    value: int


Part = Union[int, str, bytes, Fixed64]


def encoded(*parts: tuple[int, Part]) -> bytes:
    """A message of these fields, each with its number. Zeros and empty texts are left out, as protobuf does."""
    message = bytearray()
    for number, part in parts:
        if isinstance(part, Fixed64):
            message += _varint(number << 3 | _FIXED64) + part.value.to_bytes(8, "little")
        elif isinstance(part, int):
            if part:
                message += _varint(number << 3 | _VARINT) + _varint(part)
        else:
            content = part.encode() if isinstance(part, str) else part
            if content or isinstance(part, bytes):
                message += _varint(number << 3 | _BYTES) + _varint(len(content)) + content
    return bytes(message)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message, each with its number."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(message):
        tag = varint()
        if tag & 7 == _VARINT:
            yield tag >> 3, varint()
            continue
        size = 8 if tag & 7 == _FIXED64 else varint()
        content = message[position : position + size]
        position += size
        yield tag >> 3, int.from_bytes(content, "little") if tag & 7 == _FIXED64 else content


def read_cursor(message: bytes) -> Cursor:
    """A cursor as the vectors write it."""
    found = dict(fields(message))
    return {
        "epoch": found.get(1, b"").decode(),
        "revision": found.get(2, 0),
        "filter_hash": f"{found.get(3, 0):016x}",
    }


def cursor(said: Cursor) -> bytes:
    """The same as a message."""
    return encoded((1, said["epoch"]), (2, said["revision"]), (3, Fixed64(int(said["filter_hash"], 16))))


def key(said: dict[str, Any]) -> bytes:
    """A resource's key as a message."""
    return encoded(
        (1, said["namespace"]), (2, said["kind"]), (3, said["key"]), (4, said["qualifier"]), (5, said["user_id"])
    )


def digest(said: dict[str, Any]) -> bytes:
    """A group's digest as a message."""
    return encoded(
        *((1, said["namespace"]), (2, said["kind"]), (3, int(said["user_scoped"]))),
        *((4, said["count"]), (5, bytes.fromhex(said["hash"]))),
    )


def _read_key(message: bytes) -> dict[str, Any]:
    found = dict(fields(message))
    texts = {name: found.get(number, b"").decode() for number, name in ((1, "namespace"), (3, "key"), (4, "qualifier"))}
    return {**texts, "kind": found.get(2, 0), "user_id": found.get(5, b"").decode()}


def _read_report(message: bytes) -> dict[str, Any]:
    report: dict[str, Any] = {"node_id": "", "applied": None, "rejected": [], "rejected_count": 0}
    for number, value in fields(message):
        if number == 1:
            report["node_id"] = value.decode()
        elif number == 2:
            report["applied"] = read_cursor(value)
        elif number == 3:
            found = dict(fields(value))
            rejected = {"key": _read_key(found[1]), "revision": found.get(2, 0), "error": found[3].decode()}
            report["rejected"].append(rejected)
        elif number == 4:
            report["rejected_count"] = value
    return report


@dataclass
class Script:
    """What a node is sent, and what it said."""

    streams: Sequence[Sequence[bytes]]
    """Of each stream the messages; then it ends."""
    then: Callable[[Cursor | None], Iterator[bytes]] = lambda _: iter(())
    """What is sent on every further stream, which stays open, to a node that has this cursor."""
    waits: frozenset[int] = frozenset()
    """The streams that do not end before `may_end` is set."""
    may_begin: threading.Event = field(default_factory=threading.Event)
    may_end: threading.Event = field(default_factory=threading.Event)
    cursors: list[Cursor | None] = field(default_factory=list)
    """Of each stream the cursor that the node opened it with."""
    reports: list[dict[str, Any]] = field(default_factory=list)


class StreamServer:
    """Serves nodes by their ids."""

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self._ends = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(160))
        handlers: dict[str, Any] = {
            "Subscribe": grpc.unary_stream_rpc_method_handler(self._subscribe),
            "ReportStatus": grpc.unary_unary_rpc_method_handler(self._report),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def close(self) -> None:
        self._ends.set()
        self._server.stop(None)

    def _subscribe(self, request: bytes, context: Any) -> Iterator[bytes]:
        said = dict(fields(request))
        script = self.scripts[dict(fields(said[1]))[1].decode()]
        script.may_begin.wait(30)
        had = read_cursor(said[5]) if 5 in said else None
        number = len(script.cursors)
        script.cursors.append(had)
        # The stream is open, whether or not anything is sent.
        context.send_initial_metadata(())
        if number < len(script.streams):
            yield from script.streams[number]
            if number in script.waits:
                script.may_end.wait(30)
            return
        yield from script.then(had)
        gone = threading.Event()
        context.add_callback(gone.set)
        while context.is_active() and not self._ends.is_set():
            gone.wait(0.2)

    def _report(self, request: bytes, _: Any) -> bytes:
        report = _read_report(request)
        self.scripts[report["node_id"]].reports.append(report)
        return b""
