"""Calling the methods of a service: what the generated classes are made on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _background, _emend
from ._message import Message, to_json
from ._settings import Addresses, Connection, connection

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

M = TypeVar("M", bound=Message)
Item = TypeVar("Item")
Page = TypeVar("Page", bound=Message)
Values = Mapping[str, Any]


class _Caller:
    """A connection, and what requests have if a call does not say."""

    def __init__(self, client: _emend.Client, namespace: str | None) -> None:
        self._client = client
        self.namespace = namespace
        """The search application of calls that name none."""

    def _request(self, values: Values) -> str:
        given = {name: to_json(value) for name, value in values.items() if value is not None}
        if self.namespace is not None and "namespace" in values:
            given.setdefault("namespace", self.namespace)
        return json.dumps(given)


class Service(_Caller):
    """Calls that wait for their answers in a thread."""

    def _call(self, method: str, answer: type[M], values: Values, deadline: float | None) -> M:
        return answer.from_dict(json.loads(self._client.call(method, self._request(values), deadline)))

    def _stream(self, method: str, answer: type[M], values: Values, deadline: float | None) -> Iterator[M]:
        answers = self._client.stream(method, self._request(values), deadline)
        while (found := answers.next()) is not None:
            yield answer.from_dict(json.loads(found))

    def _upload(self, method: str, answer: type[M], requests: Iterable[Values], deadline: float | None) -> M:
        upload = self._client.upload(method, deadline)
        try:
            for request in requests:
                if not upload.send(json.dumps(request)):
                    break
            return answer.from_dict(json.loads(upload.finish()))
        finally:
            # What was sent is not the beginning of anything if there is no more.
            upload.cancel()

    def _pages(
        self, method: str, answer: type[Page], items: str, values: Values, deadline: float | None
    ) -> Pages[Any, Page]:
        return Pages(self, method, answer, items, values, deadline)


class AsyncService(_Caller):
    """The same calls for asyncio."""

    async def _call(self, method: str, answer: type[M], values: Values, deadline: float | None) -> M:
        request = self._request(values)
        found = await _background.awaited(
            lambda done: self._client.start_call(method, request, deadline, done)
        )
        return answer.from_dict(json.loads(found))

    async def _stream(
        self, method: str, answer: type[M], values: Values, deadline: float | None
    ) -> AsyncIterator[M]:
        request = self._request(values)
        answers: _emend.Answers = await _background.awaited(
            lambda done: self._client.start_stream(method, request, deadline, done)
        )
        while (found := await _background.awaited(answers.start_next)) is not None:
            yield answer.from_dict(json.loads(found))

    async def _upload(
        self, method: str, answer: type[M], requests: AsyncIterable[Values], deadline: float | None
    ) -> M:
        upload = self._client.upload(method, deadline)
        try:
            async for request in requests:
                if not await _background.awaited(partial(upload.start_send, json.dumps(request))):
                    break
            return answer.from_dict(json.loads(await _background.awaited(upload.start_finish)))
        finally:
            upload.cancel()

    def _pages(
        self, method: str, answer: type[Page], items: str, values: Values, deadline: float | None
    ) -> AsyncPages[Any, Page]:
        return AsyncPages(self, method, answer, items, values, deadline)


class Pages(Generic[Item, Page]):
    """Items of a list, of which pages are fetched as they are needed. It can be gone through again, which fetches them anew."""

    def __init__(
        self, service: Service, method: str, answer: type[Page], items: str, values: Values, deadline: float | None
    ) -> None:
        self._service = service
        self._asked = (method, answer)
        self._items = items
        self._values = values
        self._deadline = deadline

    def pages(self) -> Iterator[Page]:
        """The answers themselves, which may say more than their items."""
        values = dict(self._values)
        while True:
            method, answer = self._asked
            page = self._service._call(method, answer, values, self._deadline)
            yield page
            values["page_token"] = page.__dict__.get("next_page_token")
            if not values["page_token"]:
                return

    def __iter__(self) -> Iterator[Item]:
        for page in self.pages():
            yield from getattr(page, self._items)


class AsyncPages(Generic[Item, Page]):
    """Items of a list, of which pages are fetched as they are needed."""

    def __init__(
        self,
        service: AsyncService,
        method: str,
        answer: type[Page],
        items: str,
        values: Values,
        deadline: float | None,
    ) -> None:
        self._service = service
        self._asked = (method, answer)
        self._items = items
        self._values = values
        self._deadline = deadline

    async def pages(self) -> AsyncIterator[Page]:
        """The answers themselves, which may say more than their items."""
        values = dict(self._values)
        while True:
            method, answer = self._asked
            page = await self._service._call(method, answer, values, self._deadline)
            yield page
            values["page_token"] = page.__dict__.get("next_page_token")
            if not values["page_token"]:
                return

    async def __aiter__(self) -> AsyncIterator[Item]:
        async for page in self.pages():
            for item in getattr(page, self._items):
                yield item


class Connected(Service):
    """A client of a service. It connects on its first call, may be shared by threads, and works on after a fork."""

    def __init__(
        self, address: Addresses, *, namespace: str | None = None, **settings: Unpack[Connection]
    ) -> None:
        """Connects to the service at ``address``: ``"HOST:PORT"``, or several of replicas.

        Args:
            namespace: The search application of calls that name none.
            settings: How the service is reached: see `Connection`.
        """
        self._settings = json.dumps(connection(address, settings))
        super().__init__(_emend.Client(self._settings), namespace)
        _background.opened(self)

    def close(self) -> None:
        """Closes the connection once the calls under way are answered. Later ones raise `FailedPrecondition` (``CLOSED``)."""
        self._client.close()
        _background.closed(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
