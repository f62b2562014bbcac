"""Importing many rows: a header, then rows in messages of some hundred, as they are made."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Union

from ._generated.messages import ImportRow
from ._message import to_json

if TYPE_CHECKING:
    from ._generated.messages import ImportAs, ImportMode

METHOD = "ResourceService/ImportResources"
_TOGETHER = 500

Row = Union[ImportRow, Mapping[str, Any]]
"""A row, or its fields. Without ``line`` it has its place, from 1 on."""


class Import(TypedDict, total=False):
    """How rows are imported."""

    namespace: str
    """The search application. Default: the client's."""
    mode: ImportMode
    """What to do with bad rows. Default: nothing is written if there is one (``"IMPORT_MODE_ALL_OR_NOTHING"``)."""
    import_as: ImportAs
    """What each row counts as. Default: a person's decision (``"IMPORT_AS_DECISION"``)."""
    reason: str
    """Why. At most 2,000 characters."""
    on_behalf_of: str
    """The operator. At most 128 characters."""
    validate_only: bool
    """Only check the rows: nothing is written."""


def header(how: Import, namespace: str | None) -> dict[str, Any]:
    """The first request."""
    return {"header": {"namespace": namespace, **how}}


def rows(together: list[tuple[int, Row]]) -> dict[str, Any]:
    """A request with rows, each with its place."""
    return {"rows": {"rows": [{"line": place, **to_json(row)} for place, row in together]}}


def requests(how: Import, namespace: str | None, of: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """All requests."""
    yield header(how, namespace)
    together: list[tuple[int, Row]] = []
    for row in enumerate(of, 1):
        together.append(row)
        if len(together) == _TOGETHER:
            yield rows(together)
            together.clear()
    if together:
        yield rows(together)


async def requests_async(
    how: Import, namespace: str | None, of: Iterable[Row] | AsyncIterable[Row]
) -> AsyncIterator[dict[str, Any]]:
    """The same, of rows that may be awaited."""
    if not isinstance(of, AsyncIterable):
        for request in requests(how, namespace, of):
            yield request
        return
    yield header(how, namespace)
    together: list[tuple[int, Row]] = []
    place = 0
    async for row in of:
        place += 1
        together.append((place, row))
        if len(together) == _TOGETHER:
            yield rows(together)
            together.clear()
    if together:
        yield rows(together)
