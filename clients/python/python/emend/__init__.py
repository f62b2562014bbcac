"""Emend for search backends: what users taught, in your process; what they say is wrong, on its way.

``Node`` answers look-ups from memory and stays current by itself. ``Feedback`` takes corrections and ratings, ``QueryRecorder``
what was searched, ``Evidence``, ``Outputs`` and ``Review`` the rest. Messages are in ``emend.messages``.
"""

from . import _interpreter as _interpreter
from ._corrections import Recorded, Said
from ._emend import Hit, Near, NearPhrase, normalize
from ._errors import (
    Aborted,
    AlreadyExists,
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Precondition,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Violation,
)
from ._node import AsyncNode, Node
from ._services import (
    AsyncEvidence,
    AsyncFeedback,
    AsyncOutputs,
    AsyncReview,
    Evidence,
    Feedback,
    Outputs,
    QueryRecorder,
    Review,
)
from ._settings import Connection

__all__ = [
    "Aborted",
    "AlreadyExists",
    "AsyncEvidence",
    "AsyncFeedback",
    "AsyncNode",
    "AsyncOutputs",
    "AsyncReview",
    "Connection",
    "DeadlineExceeded",
    "Error",
    "Evidence",
    "FailedPrecondition",
    "Feedback",
    "Hit",
    "InvalidArgument",
    "Node",
    "NotFound",
    "Outputs",
    "PermissionDenied",
    "Precondition",
    "QueryRecorder",
    "Recorded",
    "ResourceExhausted",
    "Review",
    "Said",
    "Unauthenticated",
    "Unavailable",
    "Violation",
    "normalize",
]
