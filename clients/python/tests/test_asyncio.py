"""The same for asyncio, and what many threads do at once."""

from __future__ import annotations

import asyncio
import concurrent.futures

import pytest

import emend

from .services import Pair, Proxy


async def test_calls_are_awaited_while_the_loop_goes_on(feedback: emend.Feedback, node: emend.Node, namespace: str) -> None:
    await node.aio.wait_ready(10)
    said = [
        feedback.aio.verb("set up a CSA", correct="create_isda", reporter=reporter, wait=True)
        for reporter in ("jane", "ana", "mia")
    ]
    answers = await asyncio.gather(*said)
    revisions = [answer.applied_revision for answer in answers if answer.applied_revision]
    assert revisions, answers
    await node.aio.wait_for_revision(max(revisions))
    assert node.resolve(namespace, "set up a CSA").choice == "create_isda"
    listed = [found async for found in feedback.aio.list_feedback(page_size=2)]
    assert len(listed) == 3
    with pytest.raises(emend.InvalidArgument):
        await feedback.aio.verb("", correct="b")


async def test_a_call_that_is_cancelled_is_given_up(pair: Pair) -> None:
    proxy = Proxy(pair.feedback)
    proxy.fall_silent()
    feedback = emend.Feedback(proxy.address, namespace="cards", deadline=30)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(feedback.aio.verb("a", correct="b"), 0.2)
    with pytest.raises(emend.DeadlineExceeded):
        await feedback.aio.verb("a", correct="b", deadline=0.2)
    proxy.talk()
    proxy.close()


async def test_a_stream_is_read_as_it_comes(pair: Pair, namespace: str) -> None:
    review = emend.Review(pair.learning, namespace=namespace)
    opened = asyncio.Event()

    async def watch() -> None:
        async for _ in review.aio.watch_queue(namespace=namespace):
            opened.set()
            return

    watching = asyncio.create_task(watch())
    await asyncio.wait_for(opened.wait(), 10)
    await watching


async def test_nodes_and_recorders_are_async_context_managers(pair: Pair, namespace: str) -> None:
    async with emend.Node(pair.learning, id="async-node") as node:
        await node.aio.wait_ready(10)
        assert node.status().connected
    async with emend.QueryRecorder(pair.feedback, namespace=namespace) as recorder:
        recorder.query(query_id="q", query_text="t", hit_count=0)
        await recorder.flush_async()
        assert recorder.counts().sent == 1


def test_thirty_two_threads_look_up_and_correct(
    feedback: emend.Feedback, node: emend.Node, namespace: str
) -> None:
    for reporter in ("jane", "ana", "mia"):
        said = feedback.verb("known", correct="go", reporter=reporter, wait=True)
    assert said.applied_revision
    node.wait_for_revision(said.applied_revision)

    def work(number: int) -> bool:
        said = feedback.verb(f"phrase {number}", correct="go", reporter="jane")
        return said.state == "pending" and all(
            node.resolve(namespace, "known").choice == "go" for _ in range(500)
        )

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        assert all(pool.map(work, range(64)))
