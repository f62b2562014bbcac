"""How a service is reached, as every class here is told."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack

Path = Union[str, "os.PathLike[str]"]
Addresses = Union[str, Sequence[str]]
"""``"HOST:PORT"`` or a URI; or several, of replicas, of which the first that answers is used."""


class Connection(TypedDict, total=False):
    """How a service is reached."""

    tls: bool
    """Addresses without a scheme are of TLS. They are also with a CA or a certificate."""
    ca: Path
    """A PEM file with the CAs that may have signed the server's certificate. Default: the system's."""
    certificate: Path
    """A PEM file with the certificate that is presented."""
    key: Path
    """A PEM file with its key."""
    token: str
    """A bearer token."""
    token_file: Path
    """A file with a bearer token, which is read again for every call."""
    headers: Mapping[str, str]
    """Other headers of every call."""
    deadline: float
    """How many seconds a call may take with all its attempts. Default: 10."""
    connect_timeout: float
    """How many seconds opening a node's stream may take. Default: 10."""
    keep_alive_interval: float
    """Seconds between keep-alive pings. Default: 15 for a node, 3 for calls."""
    keep_alive_timeout: float
    """Seconds after which an unanswered ping ends the connection. Default: 10 for a node, 2 for calls."""


def connection(addresses: Addresses, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as the library reads them."""
    given = {
        name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in settings.items()
    }
    given["addresses"] = [addresses] if isinstance(addresses, str) else list(addresses)
    return given
