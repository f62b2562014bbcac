"""The card search over real HTTP, and the retriever with the real LangChain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

import emend
from emend import messages
from emend.langchain import TrustedRetriever

from .services import ROOT, Pair, eventually


def test_the_card_search_finds_what_its_players_taught(pair: Pair, tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = {**os.environ, "EMEND_FEEDBACK": pair.feedback, "EMEND_LEARNING": pair.learning}
    command = [sys.executable, "-m", "uvicorn", "card_search:app", "--port", "0"]
    with log.open("w") as output:
        server = subprocess.Popen(
            command, cwd=ROOT / "examples/python", env=environment, stdout=output, stderr=output
        )
    try:
        address = eventually("it listens", lambda: _address(log))
        with httpx.Client(base_url=address, timeout=20) as http:
            queries = {
                "damage to the face": ("leader", "the face"),
                "draw from the library": ("deck", "the library"),
                "destroy an enemy follower": ("banish", "destroy"),
            }
            for query, (term, equivalent) in queries.items():
                found = http.get("/search", params={"q": query}).raise_for_status().json()
                assert found["cards"] == {}, found
                for player in ("jane", "ana", "mia"):
                    rating = {"query_id": found["query_id"], "value": -1, "player": player}
                    http.post("/ratings", json=rating).raise_for_status()
                    said = http.post(
                        "/terms", json={"term": term, "equivalent": equivalent, "player": player}
                    )
                    assert said.raise_for_status().json()["message"]
            for query in queries:
                eventually(query, lambda: http.get("/search", params={"q": query}).json()["cards"])
            refused = http.post("/ratings", json={"query_id": "q", "value": 7, "player": "jane"})
            assert refused.status_code == 422 and refused.json()["violations"], refused.text

        feedback = emend.Feedback(pair.feedback, namespace="cards")
        recorded = eventually(
            "the queries are recorded",
            lambda: [query for query in feedback.list_queries() if query.query_text in queries],
        )
        assert {query.hit_count for query in recorded} >= {0}
    finally:
        server.terminate()
        # It says by what it was ended, once all is closed.
        assert server.wait(timeout=20) in (0, -signal.SIGTERM), log.read_text()
        assert "Application shutdown complete" in log.read_text()


def _address(log: Path) -> str | None:
    for word in log.read_text().split():
        if word.startswith("http://127.0.0.1:"):
            return word
    return None


class Fixed(BaseRetriever):
    """Finds the same documents for every query."""

    found: list[Document]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self.found


async def test_the_retriever_leaves_out_blocked_sources_and_records(
    pair: Pair, node: emend.Node, feedback: emend.Feedback, namespace: str
) -> None:
    blocked = feedback.block_domain("spam.example", reporter="jane", reason="spam", wait=True)
    trusted = feedback.trust_domain("arxiv.org", level="academic", reporter="jane", reason="papers", wait=True)
    assert blocked.applied_revision and trusted.applied_revision
    node.wait_for_revision(max(blocked.applied_revision, trusted.applied_revision))
    sources = ["https://spam.example/a", "https://other.example/b", "https://arxiv.org/abs/1"]
    inner = Fixed(found=[Document(source, metadata={"source": source}) for source in sources])
    with emend.QueryRecorder(pair.feedback, namespace=namespace) as recorder:
        # [retriever]
        retriever = TrustedRetriever(retriever=inner, node=node, namespace=namespace, recorder=recorder)
        documents = retriever.invoke("coffee")
        # [/retriever]
        for documents in (documents, await retriever.ainvoke("coffee")):
            assert [document.metadata["source"] for document in documents] == [sources[2], sources[1]]
            query_id = documents[0].metadata["query_id"]
        recorder.flush()
    assert feedback.rate(query_id, 1, reporter="jane").feedback.query_id == query_id

    def stored() -> messages.Query | None:
        return next((query for query in feedback.list_queries() if query.query_id == query_id), None)

    query = eventually("it is stored", stored)
    assert (query.query_text, query.hit_count) == ("coffee", 2)
    assert query.top_results[0].object_id == sources[2]


def test_a_retriever_without_a_recorder_records_nothing(node: emend.Node, namespace: str) -> None:
    inner = Fixed(found=[Document("a", metadata={"source": "a.example", "score": 0.5})])
    [document] = TrustedRetriever(retriever=inner, node=node, namespace=namespace).invoke("q")
    assert document.metadata["score"] == pytest.approx(0.5 * node.trust(namespace, "a.example").weight)
