"""Emend around a retriever of LangChain. Needs the package ``langchain-core``: ``pip install emend[langchain]``."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from ._node import Node
from ._services import QueryRecorder
from .messages import Query, QueryResult


def source_of(document: Document) -> str:
    """The host of a document's ``source``, which may be a URL; empty: it has none."""
    source = str(document.metadata.get("source", ""))
    return (urlsplit(source).hostname or "") if "://" in source else source


class TrustedRetriever(BaseRetriever):
    """Another retriever's documents without those of blocked sources, the most trusted first, recorded as a query.

    Each document has the ``query_id`` in its metadata, by which the answer is rated: ``feedback.rate(query_id, 1)``.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    retriever: BaseRetriever
    """What finds the documents."""
    node: Node
    """What knows which sources are trusted."""
    namespace: str
    """The search application."""
    recorder: QueryRecorder | None = None
    """Where queries are recorded; ``None``: they are not."""
    query_type: str = "SEMANTIC"
    """How it searches, as it is recorded."""
    source: Callable[[Document], str] = source_of
    """The host of a document's source."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = self.retriever.invoke(query, config={"callbacks": run_manager.get_child()})
        return self._trusted(query, found)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = await self.retriever.ainvoke(query, config={"callbacks": run_manager.get_child()})
        return self._trusted(query, found)

    def _trusted(self, query: str, found: list[Document]) -> list[Document]:
        scored = ((document, self.source(document), _score(document)) for document in found)
        ranked = self.node.rank(self.namespace, scored)
        query_id = str(uuid.uuid4())
        if self.recorder is not None:
            results = [
                QueryResult(object_id=_object_id(document, place), score=score)
                for place, (document, _, score) in enumerate(ranked[:100])
            ]
            self.recorder.query(
                Query(
                    query_id=query_id,
                    query_text=query,
                    query_type=self.query_type,
                    top_results=results,
                    hit_count=len(ranked),
                )
            )
        return [_with(document, query_id, score) for document, _, score in ranked]


def _score(document: Document) -> float:
    score: Any = document.metadata.get("score", 1.0)
    return float(score)


def _object_id(document: Document, place: int) -> str:
    return str(document.id or document.metadata.get("source") or place)[:256]


def _with(document: Document, query_id: str, score: float) -> Document:
    metadata = {**document.metadata, "query_id": query_id, "score": score}
    return document.model_copy(update={"metadata": metadata})
