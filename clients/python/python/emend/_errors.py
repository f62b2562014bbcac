"""Why something failed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Violation(NamedTuple):
    """One violated field."""

    field: str
    """Its path, for example ``correction.verb.original_input``."""
    description: str
    """What is wrong with it, with the bound."""


class Precondition(NamedTuple):
    """One precondition that does not hold."""

    kind: str
    """Its sort, for example ``NEWER_REVISION``."""
    subject: str
    """What it is about."""
    description: str
    """What does not hold."""


class Error(Exception):
    """Something failed. As text it is all that is known, with a line for each violated field."""

    code: str
    """The gRPC code, for example ``"INVALID_ARGUMENT"``."""
    message: str
    """One sentence."""
    reason: str | None
    """A stable reason in UPPER_SNAKE_CASE, if there is one."""
    violations: Sequence[Violation]
    """Every violated field."""
    preconditions: Sequence[Precondition]
    """Every precondition that does not hold, for example each revision that is in the way of a revert."""
    retry_after: float | None
    """How many seconds to wait before the next attempt, if the server said so."""
    request_id: str | None
    """The request's id in the server's log, if the server answered."""

    def __init__(self, failure: Mapping[str, Any]) -> None:
        super().__init__(failure["text"])
        self.code = failure["code"]
        self.message = failure["message"]
        self.reason = failure["reason"]
        self.violations = tuple(Violation(**found) for found in failure["violations"])
        self.preconditions = tuple(Precondition(**found) for found in failure["preconditions"])
        self.retry_after = failure["retry_after"]
        self.request_id = failure["request_id"]
        self._failure = dict(failure)

    def __reduce__(self) -> tuple[type[Error], tuple[dict[str, Any]]]:
        # Task queues carry exceptions from one process to another.
        return (type(self), (self._failure,))


class InvalidArgument(Error):
    """Fields are wrong: ``violations`` names each with its bound."""


class NotFound(Error):
    """There is no such thing."""


class AlreadyExists(Error):
    """There is another of that name, or the request id was used for something else."""


class FailedPrecondition(Error):
    """It can't be done in this state. ``reason`` says why; ``FORKED``: make the node after the fork; ``CLOSED``: make
    another one."""


class Aborted(Error):
    """Somebody else changed it meanwhile: read it again."""


class Unauthenticated(Error):
    """There is no valid token or certificate."""


class PermissionDenied(Error):
    """The caller may not do this."""


class ResourceExhausted(Error):
    """There is too much of it; ``retry_after`` says when to try again."""


class Unavailable(Error):
    """The service can't be reached, or is overloaded."""


class DeadlineExceeded(Error):
    """There was no answer in time. What was to be changed may be changed all the same."""


_CLASSES: Mapping[str, type[Error]] = {
    "INVALID_ARGUMENT": InvalidArgument,
    "OUT_OF_RANGE": InvalidArgument,
    "NOT_FOUND": NotFound,
    "ALREADY_EXISTS": AlreadyExists,
    "FAILED_PRECONDITION": FailedPrecondition,
    "ABORTED": Aborted,
    "UNAUTHENTICATED": Unauthenticated,
    "PERMISSION_DENIED": PermissionDenied,
    "RESOURCE_EXHAUSTED": ResourceExhausted,
    "UNAVAILABLE": Unavailable,
    "DEADLINE_EXCEEDED": DeadlineExceeded,
}


def from_failure(failure: Mapping[str, Any]) -> Error:
    """The exception for a failure of the library."""
    return _CLASSES.get(failure["code"], Error)(failure)


def invalid(field: str, description: str) -> Error:
    """The exception for an argument that is refused here already."""
    said = f"{field}: {description}"
    violation = {"field": field, "description": description}
    refused = {"code": "INVALID_ARGUMENT", "reason": "INVALID_FIELDS", "message": said, "text": said}
    unsaid = {"preconditions": (), "retry_after": None, "request_id": None}
    return from_failure({**refused, **unsaid, "violations": (violation,)})


def from_json(failure: str) -> Error:
    """The same for one in JSON."""
    return from_failure(json.loads(failure))
