from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import emend

from .services import Pair

_numbers = itertools.count()


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(tmp_path_factory.mktemp("pair"))
    yield pair
    pair.kill()


@pytest.fixture
def own_pair(tmp_path: Path) -> Iterator[Callable[..., Pair]]:
    """Starts pairs of a test's own."""
    pairs: list[Pair] = []

    def start(*arguments: str, directory: Path | None = None) -> Pair:
        pairs.append(Pair(directory or tmp_path / f"pair-{len(pairs)}", *arguments))
        return pairs[-1]

    yield start
    for pair in pairs:
        pair.kill()


@pytest.fixture
def namespace() -> str:
    """A search application of the test's own."""
    return f"test-{next(_numbers)}"


@pytest.fixture
def node(pair: Pair, namespace: str) -> Iterator[emend.Node]:
    with emend.Node(pair.learning, id=f"node-{namespace}", bookmark_interval=1, include_user_scoped=True) as node:
        node.wait_ready(30)
        yield node


@pytest.fixture
def feedback(pair: Pair, namespace: str) -> Iterator[emend.Feedback]:
    with emend.Feedback(pair.feedback, namespace=namespace) as feedback:
        yield feedback


@pytest.fixture
def review(pair: Pair, namespace: str) -> Iterator[emend.Review]:
    with emend.Review(pair.learning, namespace=namespace) as review:
        yield review
