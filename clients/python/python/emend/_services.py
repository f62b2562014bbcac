"""The services as backends and reviewers call them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Awaitable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Union

from . import _background, _emend, _imports
from ._calls import Connected
from ._corrections import Corrections, Recorded, Said, request
from ._errors import Error
from ._generated.messages import (
    BatchSubmitFeedbackResponse,
    Correction,
    GetFeedbackResponse,
    ImportResourcesResponse,
    Query,
    QueryInteraction,
    SubmitFeedbackRequest,
    SubmitFeedbackResponse,
)
from ._generated.messages import Feedback as FeedbackMessage
from ._generated.services import (
    AccessService,
    AsyncAccessService,
    AsyncCandidateService,
    AsyncEvidenceService,
    AsyncFeedbackService,
    AsyncOutputService,
    AsyncPolicyService,
    AsyncProfileService,
    AsyncQueryService,
    AsyncResourceService,
    AsyncSettingsService,
    AsyncSubscriptionService,
    CandidateService,
    EvidenceService,
    FeedbackService,
    OutputService,
    PolicyService,
    ProfileService,
    QueryService,
    ResourceService,
    SettingsService,
    SubscriptionService,
)
from ._message import to_json
from ._settings import Addresses, Connection, connection
from .answers import RecorderCounts

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_SUBMIT = "FeedbackService/SubmitFeedback"
_BATCH = "FeedbackService/BatchSubmitFeedback"


class AsyncFeedback(
    AsyncFeedbackService,
    AsyncQueryService,
    AsyncSettingsService,
    AsyncAccessService,
    Corrections[Awaitable[Recorded]],
):
    """The feedback service, for asyncio."""

    async def submit(
        self, correction: Union[Correction, Mapping[str, Any]], **said: Unpack[Said]
    ) -> Recorded:
        """Stores a correction of any form. When it returns, it is stored and will not be lost."""
        values = request(correction, said, self.namespace)
        answer = await self._call(_SUBMIT, SubmitFeedbackResponse, values, said.get("deadline"))
        return Recorded(answer.feedback or FeedbackMessage())

    async def get(self, feedback_id: str, *, namespace: str | None = None) -> Recorded:
        """A correction with what has become of it."""
        answer: GetFeedbackResponse = await self.get_feedback(namespace=namespace, feedback_id=feedback_id)
        return Recorded(answer.feedback or FeedbackMessage())

    async def retract(
        self, feedback_id: str, *, reason: str = "", namespace: str | None = None, wait: bool = False
    ) -> Recorded:
        """Retracts a correction: it no longer counts."""
        answer = await self.retract_feedback(
            namespace=namespace,
            feedback_id=feedback_id,
            reason=reason,
            wait="WAIT_EVALUATED" if wait else "WAIT_RECORDED",
        )
        return Recorded(answer.feedback or FeedbackMessage())

    async def submit_all(
        self,
        corrections: Sequence[Union[SubmitFeedbackRequest, Mapping[str, Any]]],
        *,
        wait: bool = False,
        deadline: float | None = None,
    ) -> list[Union[Recorded, Error]]:
        """Stores up to 100 corrections; of those that failed there is the error in their place."""
        values = _batch(corrections, wait, self.namespace)
        return _results(await self._call(_BATCH, BatchSubmitFeedbackResponse, values, deadline))


class Feedback(
    Connected, FeedbackService, QueryService, SettingsService, AccessService, Corrections[Recorded]
):
    """The feedback service: what users say is wrong, and what became of it."""

    @cached_property
    def aio(self) -> AsyncFeedback:
        """The same for asyncio."""
        return AsyncFeedback(self._client, self.namespace)

    def submit(self, correction: Union[Correction, Mapping[str, Any]], **said: Unpack[Said]) -> Recorded:
        """Stores a correction of any form. When it returns, it is stored and will not be lost."""
        values = request(correction, said, self.namespace)
        answer = self._call(_SUBMIT, SubmitFeedbackResponse, values, said.get("deadline"))
        return Recorded(answer.feedback or FeedbackMessage())

    def get(self, feedback_id: str, *, namespace: str | None = None) -> Recorded:
        """A correction with what has become of it."""
        answer = self.get_feedback(namespace=namespace, feedback_id=feedback_id)
        return Recorded(answer.feedback or FeedbackMessage())

    def retract(
        self, feedback_id: str, *, reason: str = "", namespace: str | None = None, wait: bool = False
    ) -> Recorded:
        """Retracts a correction: it no longer counts."""
        answer = self.retract_feedback(
            namespace=namespace,
            feedback_id=feedback_id,
            reason=reason,
            wait="WAIT_EVALUATED" if wait else "WAIT_RECORDED",
        )
        return Recorded(answer.feedback or FeedbackMessage())

    def submit_all(
        self,
        corrections: Sequence[Union[SubmitFeedbackRequest, Mapping[str, Any]]],
        *,
        wait: bool = False,
        deadline: float | None = None,
    ) -> list[Union[Recorded, Error]]:
        """Stores up to 100 corrections; of those that failed there is the error in their place."""
        values = _batch(corrections, wait, self.namespace)
        return _results(self._call(_BATCH, BatchSubmitFeedbackResponse, values, deadline))


def _batch(
    corrections: Sequence[Union[SubmitFeedbackRequest, Mapping[str, Any]]], wait: bool, namespace: str | None
) -> dict[str, Any]:
    requests = [to_json(correction) for correction in corrections]
    if namespace is not None:
        for one in requests:
            one.setdefault("namespace", namespace)
    return {"requests": requests, "wait": "WAIT_EVALUATED" if wait else None}


def _results(answer: BatchSubmitFeedbackResponse) -> list[Union[Recorded, Error]]:
    return [result.status or Recorded(result.feedback or FeedbackMessage()) for result in answer.results]


class AsyncReview(
    AsyncCandidateService,
    AsyncPolicyService,
    AsyncResourceService,
    AsyncSubscriptionService,
    AsyncAccessService,
):
    """The learning service, for asyncio."""

    async def import_resources(
        self, rows: Iterable[_imports.Row] | AsyncIterable[_imports.Row], *, deadline: float = 600.0, **how: Unpack[_imports.Import]
    ) -> ImportResourcesResponse:
        """See `Review.import_resources`; rows may be awaited."""
        requests = _imports.requests_async(how, self.namespace, rows)
        return await self._upload(_imports.METHOD, ImportResourcesResponse, requests, deadline)



class Review(
    Connected, CandidateService, PolicyService, ResourceService, SubscriptionService, AccessService
):
    """The learning service as reviewers and operators see it: what waits for a decision, what is learned, policies, the log, and
    the nodes."""

    def import_resources(
        self, rows: Iterable[_imports.Row], *, deadline: float = 600.0, **how: Unpack[_imports.Import]
    ) -> ImportResourcesResponse:
        """Imports many rows: phrase mappings, entities, prohibitions, synonyms. They are sent as they are made, so there may be more
        than fit into memory. If making one fails, nothing is imported.

        Args:
            rows: Each an `ImportRow` or its fields, for example
                ``{"correction": {"phrase_mapping": {"phrase": "a", "verb": "b"}}}``.
            deadline: How many seconds all of it may take.
        """
        requests = _imports.requests(how, self.namespace, rows)
        return self._upload(_imports.METHOD, ImportResourcesResponse, requests, deadline)

    @cached_property
    def aio(self) -> AsyncReview:
        """The same for asyncio."""
        return AsyncReview(self._client, self.namespace)


class AsyncEvidence(AsyncEvidenceService, AsyncAccessService):
    """The evidence graph, for asyncio."""


class Evidence(Connected, EvidenceService, AccessService):
    """The evidence graph of the learning service: pages, fragments, claims, edges, and the trust in sources."""

    @cached_property
    def aio(self) -> AsyncEvidence:
        """The same for asyncio."""
        return AsyncEvidence(self._client, self.namespace)


class AsyncOutputs(AsyncOutputService, AsyncProfileService, AsyncAccessService):
    """Prompts, ratings and profiles, for asyncio."""


class Outputs(Connected, OutputService, ProfileService, AccessService):
    """What an AI is asked with and how its outputs are rated: prompts, their versions and improvements, examples, and the profiles
    of users."""

    @cached_property
    def aio(self) -> AsyncOutputs:
        """The same for asyncio."""
        return AsyncOutputs(self._client, self.namespace)


class QueryRecorder:
    """Records what was searched in the background: it never waits, and never fails a search. A forked child has a queue of its
    own."""

    def __init__(self, address: Addresses, *, namespace: str, **settings: Unpack[Connection]) -> None:
        """Records into the feedback service at ``address``, for one search application."""
        self._recorder = _emend.Recorder(json.dumps(connection(address, settings)), namespace)
        _background.opened(self)

    def query(self, query: Query | Mapping[str, Any] | None = None, /, **fields: Any) -> bool:
        """Records a query: a `Query`, or its fields. Say ``hit_count`` also if nothing was found.

        Returns:
            Whether there was room; if not, it is dropped and counted.
        """
        return self._recorder.query(json.dumps(to_json(query or Query(**fields))))

    def interaction(
        self, interaction: QueryInteraction | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> bool:
        """Records what a user did with a result: a `QueryInteraction`, or its fields."""
        return self._recorder.interaction(json.dumps(to_json(interaction or QueryInteraction(**fields))))

    def flush(self) -> None:
        """Waits until all that was recorded before is sent or dropped."""
        self._recorder.flush()

    async def flush_async(self) -> None:
        """The same for asyncio."""
        await _background.awaited(self._recorder.start_flush)

    def counts(self) -> RecorderCounts:
        """What became of what this process recorded."""
        sent, dropped, invalid = self._recorder.counts()
        return RecorderCounts(sent=sent, dropped=dropped, invalid=invalid)

    def close(self) -> None:
        """Sends what is queued, for 2 s at most, and ends."""
        self._recorder.close()
        _background.closed(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await _background.awaited(self._recorder.start_close)
        _background.closed(self)
