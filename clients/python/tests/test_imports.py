"""Importing more rows than one request holds, and giving it up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import emend


def row(phrase: str) -> dict[str, Any]:
    return {"correction": {"phrase_mapping": {"phrase": phrase, "verb": "walk"}}}


def rows(name: str, count: int) -> Iterator[dict[str, Any]]:
    return (row(f"{name} {number}") for number in range(1, count + 1))


def learned(review: emend.Review, prefix: str) -> int:
    return len(list(review.list_resources(key_prefix=prefix)))


def test_rows_are_sent_as_they_are_made_and_bad_ones_are_named(review: emend.Review) -> None:
    def all_rows() -> Iterator[dict[str, Any]]:
        yield from rows("phrase", 1_200)
        yield row("")

    # [import]
    said = review.import_resources(all_rows(), mode="IMPORT_MODE_SKIP_INVALID", reason="a test")
    print(said.applied_count, [(error.line, error.description) for error in said.errors])
    # [/import]
    assert (said.applied_count, said.rejected_count) == (1_200, 1)
    assert said.errors[0].line == 1_201 and said.errors[0].description
    assert learned(review, "phrase") == 1_200


def test_nothing_is_imported_if_making_a_row_fails(review: emend.Review) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield from rows("half", 800)
        raise RuntimeError("the source is broken")

    with pytest.raises(RuntimeError, match="the source is broken"):
        review.import_resources(broken())
    with pytest.raises(emend.InvalidArgument):
        review.import_resources([row("one")], namespace="")
    assert learned(review, "half") == 0


async def test_rows_may_be_awaited(review: emend.Review) -> None:
    async def slowly() -> AsyncIterator[dict[str, Any]]:
        for one in rows("awaited", 700):
            yield one

    said = await review.aio.import_resources(slowly())
    assert said.applied_count == 700
    again = await review.aio.import_resources(rows("awaited", 700))
    assert (again.applied_count, again.unchanged_count) == (0, 700)
