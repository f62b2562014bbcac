"""Threads of Python that bring what happens in the background to Python, and their end.

Threads of Rust never call into Python, which may be about to end. What they have to say is fetched by threads that end before
the interpreter does.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from . import _emend

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_LEVELS = {
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG,
}
_logger = logging.getLogger("emend")
_lock = threading.Lock()
_ending = threading.Event()
_log_thread: threading.Thread | None = None


class _Closeable(Protocol):
    def close(self) -> None: ...


_open: weakref.WeakSet[_Closeable] = weakref.WeakSet()


def opened(resource: _Closeable) -> None:
    """Closes it when the program ends, if nobody did before."""
    with _lock:
        _open.add(resource)
        _collect_log()


def closed(resource: _Closeable) -> None:
    """It need not be closed any more."""
    with _lock:
        _open.discard(resource)


def _collect_log() -> None:
    global _log_thread
    if _log_thread is None or not _log_thread.is_alive():
        level = "DEBUG" if _logger.isEnabledFor(logging.DEBUG) else "INFO"
        _emend.collect_log(level)
        _log_thread = threading.Thread(target=_bring_log, name="emend-log", daemon=True)
        _log_thread.start()


def _bring_log() -> None:
    while not _ending.is_set():
        record = _emend.next_record(0.2)
        if record is not None:
            level, logger, message = record
            logging.getLogger(logger).log(_LEVELS[level], "%s", message)


def _end() -> None:
    for resource in list(_open):
        try:
            resource.close()
        except Exception:
            _logger.debug("at the end of the program", exc_info=True)
    _ending.set()
    if _log_thread is not None and _log_thread.is_alive():
        _log_thread.join(1)
    _emend.shutdown()


def _forked() -> None:
    """A child has none of its parent's threads, and must not wait for its locks."""
    global _lock, _ending, _log_thread
    _lock = threading.Lock()
    _ending = threading.Event()
    _log_thread = None
    _open.clear()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


async def awaited(start: Callable[[Callable[[Any, BaseException | None], object]], _emend.Task]) -> Any:
    """Waits in an event loop for what ``start`` begins. To cancel it gives up what was begun."""
    # Who runs an event loop has it already; others need not wait for it.
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(answer: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(answer)

    def done(answer: Any, error: BaseException | None) -> None:
        try:
            loop.call_soon_threadsafe(settle, answer, error)
        except RuntimeError:
            # The loop is closed: nobody waits any more.
            pass

    task = start(done)
    try:
        return await future
    finally:
        if not future.done() or future.cancelled():
            task.cancel()
