"""A node: what was learned, in this process, always current."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from . import _background, _emend
from ._settings import Addresses, Connection, Path, connection
from .answers import (
    Change,
    CurrentPrompt,
    Decided,
    Examples,
    Expanded,
    NodeStatus,
    RenderedPrompt,
    SearchTuning,
    Trust,
    UserProfile,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Result = TypeVar("Result")
_logger = logging.getLogger("emend")


class Node:
    """What was learned, in this process, always current.

    It connects and stays current in the background; a look-up never waits for the network. Threads may share it. After a fork its
    child has to make its own: look-ups there raise `FailedPrecondition` (``FORKED``), which says where.
    """

    def __init__(
        self,
        address: Addresses,
        *,
        id: str,
        cache_dir: Path | None = None,
        namespaces: Sequence[str] = (),
        kinds: Sequence[str] = (),
        include_user_scoped: bool = False,
        version: str = "",
        zone: str = "",
        labels: Mapping[str, str] | None = None,
        transient: bool = False,
        cache_interval: float | None = None,
        bookmark_interval: float | None = None,
        accept_installation: str | None = None,
        mirror_prompts: Mapping[Literal["directory", "namespace", "label"], str] | None = None,
        near_vectors: Path | None = None,
        **settings: Unpack[Connection],
    ) -> None:
        """Starts a node of the learning service at ``address``.

        It connects in the background. It answers at once from its copy on disk, if there is one.

        Args:
            id: The node's id among all nodes: 1 to 128 characters of ``[A-Za-z0-9._:-]``.
            cache_dir: The directory of its copy on disk, from which it answers while the service is away.
            namespaces: The search applications that it answers for. Default: all that it may read.
            kinds: The kinds that it answers for. Default: all.
            include_user_scoped: It answers with what users taught for themselves, too.
            version: The version of its software, for operators.
            zone: Where it runs, for operators.
            labels: What describes it, for operators; at most 16.
            transient: It is no longer listed once it is gone.
            cache_interval: The least number of seconds between writes of the copy. Default: 30.
            bookmark_interval: Seconds between the server's bookmarks, 1 to 3,600. A server that sends nothing for three
                times as long, but at least 25 s, is left. Default: 9.
            accept_installation: The installation that it accepts although its copy is of another.
            mirror_prompts: Prompts that it keeps as files: ``directory``, ``namespace`` and ``label``.
            near_vectors: The directory of the vectors (Model2Vec's format) that near answers are given by, too, where
                a policy names just these; all nodes need the same files.
            settings: How the service is reached: see `Connection`.
        """
        given: dict[str, Any] = {
            "connection": connection(address, settings),
            "id": id,
            "cache_dir": None if cache_dir is None else os.fspath(cache_dir),
            "namespaces": list(namespaces),
            "kinds": list(kinds),
            "include_user_scoped": include_user_scoped,
            "version": version,
            "zone": zone,
            "labels": dict(labels or {}),
            "transient": transient,
            "cache_interval": cache_interval,
            "bookmark_interval": bookmark_interval,
            "accept_installation": accept_installation,
            "mirror_prompts": None if mirror_prompts is None else dict(mirror_prompts),
            "near_vectors": None if near_vectors is None else os.fspath(near_vectors),
        }
        self._node = _emend.Node(json.dumps(given))
        self._threads: list[threading.Thread] = []
        self.aio = AsyncNode(self)
        """What waits, for asyncio."""
        _background.opened(self)

    def resolve(
        self,
        namespace: str,
        phrase: str,
        candidates: Sequence[tuple[str, float]] | None = None,
        kind: str | None = None,
        user: str | None = None,
        near: bool = False,
    ) -> _emend.Hit:
        """Answers for a phrase: what was learned for the user or for everybody, what never to offer, and whether to ask.

        Args:
            candidates: What the backend would answer by itself: (value, score from 0.0 to 1.0).
            kind: ``"verb"`` (the default) or ``"entity"``.
            user: Whose own answers come first.
            near: Where nothing was learned for the phrase, answer by what was learned for similar ones, too: ``hit.near``. The
                first call that asks has the models made, which takes seconds; `wait_near` waits for them.
        """
        return self._node.resolve(namespace, phrase, candidates, kind, user, near)

    def synonyms(self, namespace: str, term: str, user: str | None = None) -> list[str]:
        """What else to search for where a term stands, its representatives first."""
        return self._node.synonyms(namespace, term, user)

    def expand(
        self,
        namespace: str,
        text: str,
        mode: Literal["keyword", "embedding"] = "keyword",
        user: str | None = None,
    ) -> Expanded:
        """A text with what else to search for where terms stand in it. Nothing is replaced."""
        return Expanded.from_dict(json.loads(self._node.expand(namespace, text, mode, user)))

    def tuning(self, namespace: str, query_type: str) -> SearchTuning:
        """How queries of a type are searched, and what to try when nothing is found."""
        return SearchTuning.from_dict(json.loads(self._node.tuning(namespace, query_type)))

    def trust(self, namespace: str, host: str) -> Trust:
        """How far a source is trusted, by its host."""
        return Trust.from_dict(json.loads(self._node.trust(namespace, host)))

    def is_blocked(self, namespace: str, host: str) -> bool:
        """Whether the sources of a host must not be shown."""
        return self._node.is_blocked(namespace, host)

    def rank(
        self, namespace: str, results: Iterable[tuple[Result, str, float]]
    ) -> list[tuple[Result, str, float]]:
        """Orders results, each with the host of its source and its score, 0.0 or more: without those of blocked sources, scores
        multiplied by the weight of the source's trust, the best first."""
        given = list(results)
        ranked = self._node.rank(namespace, [(host, score) for _, host, score in given])
        return [(given[place][0], given[place][1], score) for place, score in ranked]

    def render_prompt(
        self,
        namespace: str,
        target: str,
        variables: Mapping[str, str] | None = None,
        user: str | None = None,
        label: str | None = None,
        language: Literal["en", "ja"] | None = None,
    ) -> RenderedPrompt | None:
        """The prompt of a target as it is sent to the AI: its text with variables filled in, the rated examples, and the profile
        of ``user``. ``None``: no version is current under the label (default: production)."""
        rendered = json.loads(
            self._node.render_prompt(namespace, target, label, dict(variables or {}), user, language)
        )
        return None if rendered is None else RenderedPrompt.from_dict(rendered)

    def prompt(self, namespace: str, target: str, label: str = "production") -> CurrentPrompt | None:
        """The version of a prompt that is current under a label; ``None``: none is."""
        found = json.loads(self._node.prompt(namespace, target, label))
        return None if found is None else CurrentPrompt.from_dict(found)

    def examples(self, namespace: str, target: str) -> Examples:
        """The newest rated examples for what an AI is asked."""
        return Examples.from_dict(json.loads(self._node.examples(namespace, target)))

    def profile(self, namespace: str, user: str) -> UserProfile:
        """What a user knows and wants to learn; only with ``include_user_scoped``."""
        return UserProfile.from_dict(json.loads(self._node.profile(namespace, user)))

    def claim_state(self, namespace: str, claim_id: str) -> Decided | None:
        """What people decided about a claim; ``None``: nothing."""
        found = json.loads(self._node.claim_state(namespace, claim_id))
        return None if found is None else Decided.from_dict(found)

    def edge_label(self, namespace: str, edge_id: str) -> Decided | None:
        """The label that a person gave an edge; ``None``: the model's applies."""
        found = json.loads(self._node.edge_label(namespace, edge_id))
        return None if found is None else Decided.from_dict(found)

    def status(self) -> NodeStatus:
        """What it holds, how current that is, and why it is not connected."""
        return NodeStatus.from_dict(json.loads(self._node.status()))

    def wait_ready(self, timeout: float = 10.0) -> None:
        """Waits until it has a state to answer from: its copy on disk, or the service's. Raises `DeadlineExceeded`, which says
        why the service can't be reached, if that is so."""
        self._node.wait_ready(timeout)

    def wait_near(self, timeout: float = 60.0) -> None:
        """Waits until near answers are by models of all that was learned. Has them made, if nobody asked for one before."""
        self._node.wait_near(timeout)

    def wait_for_revision(self, revision: int, timeout: float = 10.0) -> None:
        """Waits until everything at or below a revision is applied, to read what one wrote."""
        self._node.wait_for_revision(revision, timeout)

    def accept_installation(self, installation: str) -> None:
        """Accepts this installation in place of the one whose resources it holds."""
        self._node.accept_installation(installation)

    def on_change(self, callback: Callable[[Change], object]) -> Callable[[], None]:
        """Calls ``callback`` with everything that happens from now on, in a thread of its own, until the node is closed. A slow
        callback delays nobody, and is told that it missed some.

        Returns:
            A function that ends it.
        """
        changes = self._node.changes()
        ended = threading.Event()

        def tell() -> None:
            while (change := changes.next()) is not None and not ended.is_set():
                try:
                    callback(Change.from_dict(json.loads(change)))
                except Exception:
                    _logger.exception("a callback of on_change failed")

        thread = threading.Thread(target=tell, name="emend-changes", daemon=True)
        self._threads.append(thread)
        thread.start()
        return ended.set

    def close(self) -> None:
        """Brings its copy on disk up to date and ends. Look-ups go on with what it holds."""
        self._node.close()
        self._ended()

    def _ended(self) -> None:
        _background.closed(self)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(2)
        self._threads.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aio.close()


class AsyncNode:
    """What waits of a node, for asyncio. Look-ups never wait, and are the node's own."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def wait_ready(self, timeout: float = 10.0) -> None:
        """See `Node.wait_ready`."""
        node = self._node._node
        await _background.awaited(lambda done: node.start_wait_ready(timeout, done))

    async def wait_near(self, timeout: float = 60.0) -> None:
        """See `Node.wait_near`."""
        node = self._node._node
        await _background.awaited(lambda done: node.start_wait_near(timeout, done))

    async def wait_for_revision(self, revision: int, timeout: float = 10.0) -> None:
        """See `Node.wait_for_revision`."""
        node = self._node._node
        await _background.awaited(lambda done: node.start_wait_for_revision(revision, timeout, done))

    async def close(self) -> None:
        """See `Node.close`."""
        await _background.awaited(self._node._node.start_close)
        self._node._ended()
