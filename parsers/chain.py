"""Stages after the machine, driven without tasks, queues or threads.

A stage is an async generator function over events. The source at the inner end yields the machine's
events and then awaits a private "need input"; a collecting coroutine at the outer end gathers what the
last stage yields. `Chain.feed` resumes that coroutine, which stops where the source needs input again.
Whatever else a stage awaits is handed through to the event loop that awaits `feed`, so this one driver
serves asyncio, trio and, through `run`, no loop at all.
"""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Sequence
from contextlib import AsyncExitStack, closing, suppress
from typing import Protocol, TypeVar

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.events import Event

Stage = Callable[[AsyncIterator[Event]], AsyncIterator[Event]]
"""`async def stage(events): async for event in events: yield event`. When the loop over `events` ends,
the reply has ended and the stage may still yield. A stage that returns early ends the reply there."""

NOT_A_STAGE = "is not an async generator function (async def with a yield)"

T = TypeVar("T")


class StageAwaitedError(RuntimeError):
    """A stage awaited something under a synchronous client, where nothing can answer it."""


class DeadChainError(RuntimeError):
    """A chain was used that takes nothing any more; the message says why."""


class _AbandonedError(BaseException):
    """Ends a stage whose await will never be answered.

    A `GeneratorExit` would not get to it: thrown into a coroutine, it only closes what that awaits.
    """


class EventSource(Protocol):
    """What a chain needs of a machine."""

    def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]: ...

    def finish(self, reason: str | None) -> list[Event]: ...


class _State(enum.Enum):
    """Whether a chain takes a call (only when READY), and why it does not."""

    READY = "ready"
    BUSY = "a stage is still awaiting in an earlier call"
    FAILED = "a stage failed"
    FINISHED = "the reply was finished"
    CLOSED = "the chain was closed"


class _Input(enum.Enum):
    """What the source does when it is resumed."""

    EVENTS = enum.auto()
    END = enum.auto()
    EXIT = enum.auto()


_READY, _EVENTS = _State.READY, _Input.EVENTS  # on the way of every delta, and Python 3.11 is slow to look up a member
_NEED_INPUT = object()


@types.coroutine
def _need_input() -> Generator[object, None, None]:
    yield _NEED_INPUT


class Chain:
    """One reply's way through its machine and stages.

    Its methods are called one after the other. Whoever makes a chain calls `aclose` in the end, also
    after an error; it is idempotent. What a stage raises leaves the call that made the stage run.
    """

    def __init__(self, machine: EventSource, stages: Sequence[Stage]) -> None:
        self._machine = machine
        self._state = _State.READY
        self._input = _Input.EVENTS
        self._events: Sequence[Event] = ()
        self._out: list[Event] = []
        self._links: list[AsyncIterator[Event]] = [self._source()]
        for stage in stages:
            self._links.append(_link(stage, self._links[-1]))
        self._collector: Coroutine[object, object, None] | None = None
        self._resume: Callable[[object], object] = self._start

    async def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        """What the last stage yields for the next text of the reply."""
        if self._state is not _READY:
            raise self._refusal("feed")
        events = self._machine.feed(text, token_ids)
        if not events:
            return events
        self._events = events
        try:
            awaited = self._resume(None)
            if awaited is not _NEED_INPUT:
                await self._hand_through(awaited)
        except BaseException:
            self._state = _State.FAILED
            raise
        return self._taken()

    async def finish(self, reason: str | None) -> list[Event]:
        """The reply has ended: the machine's last events, and what the stages yield after them.

        `reason` is the engine's finish reason. Afterwards every stage has run to its end or is closed.
        """
        if self._state is not _READY:
            raise self._refusal("finish")
        self._events = self._machine.finish(reason)
        try:
            await self._hand_through(self._resume(None))
            self._input = _Input.END
            await self._hand_through(self._resume(None))
        except BaseException:
            self._state = _State.FAILED
            raise
        self._state = _State.FINISHED
        await self._close_links()
        return self._taken()

    async def aclose(self) -> None:
        """End every stage where it stands, running its `finally` blocks; nothing is emitted."""
        if self._state is _State.BUSY:
            raise self._refusal("aclose")
        unfinished = self._state is _State.READY
        self._state = _State.CLOSED
        try:
            if unfinished and self._collector is not None:
                self._input = _Input.EXIT
                await self._hand_through(self._resume(None))
        finally:
            await self._close_links()

    def _refusal(self, call: str) -> DeadChainError:
        return DeadChainError(f"{call}: the chain takes no call: {self._state.value}")

    def _taken(self) -> list[Event]:
        out = self._out.copy()
        self._out.clear()
        return out

    def _start(self, _: object) -> object:
        """Resume the stages for the first time.

        An event loop takes each generator that is first iterated under it into its care, and on dropping
        a chain would try to close them one by one while they run in each other. These have their owner.
        """
        self._collector = self._collect(self._links[-1])
        self._resume = self._collector.send
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)
        try:
            return self._resume(None)
        finally:
            sys.set_asyncgen_hooks(*hooks)

    async def _source(self) -> AsyncIterator[Event]:
        while self._input is _EVENTS:
            for event in self._events:
                yield event
            await _need_input()
        if self._input is _Input.EXIT:
            raise GeneratorExit  # raised, not thrown in, so that a `finally` on its way may await

    async def _collect(self, events: AsyncIterator[Event]) -> None:
        take = self._out.append
        try:
            async for event in events:
                take(event)
        except GeneratorExit:
            if self._input is not _Input.EXIT:
                raise
        while True:  # what is fed after the last stage has returned goes nowhere
            await _need_input()

    @types.coroutine
    def _hand_through(self, awaited: object) -> Generator[object, object, None]:
        """Have the event loop answer what a stage awaits, until the source needs input again."""
        assert self._collector is not None
        state, self._state = self._state, _State.BUSY
        try:
            while awaited is not _NEED_INPUT:
                try:
                    answer = yield awaited
                except GeneratorExit:
                    with suppress(_AbandonedError):
                        self._collector.throw(_AbandonedError())
                    raise
                except BaseException as error:
                    awaited = self._collector.throw(error)
                else:
                    awaited = self._resume(answer)
        finally:
            self._state = state

    async def _close_links(self) -> None:
        """Close what the events pass through, outermost first; all of it, whatever one of them raises."""
        if self._collector is not None:
            self._collector.close()
        async with AsyncExitStack() as stack:
            for link in self._links:
                if isinstance(link, AsyncGenerator):
                    stack.push_async_callback(link.aclose)


def run(coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine that must not suspend, as none of this library's does while no stage awaits.

    Raises `StageAwaitedError` where one does, from within the stage, so that the traceback shows where.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    except RuntimeError as failure:
        if any(words in str(failure) for words in _NO_LOOP):
            raise _stage_awaited("an event loop") from failure
        raise
    refusal = _stage_awaited(repr(awaited))
    with closing(coroutine), suppress(StopIteration):
        coroutine.throw(refusal)
    raise refusal  # a stage caught it; but what it goes on with is not what it asked for


_NO_LOOP = ("event loop", "async context", "async library")
"""How asyncio, trio, anyio and sniffio say that no event loop is running."""


def _stage_awaited(what: str) -> StageAwaitedError:
    return StageAwaitedError(
        f"a stage awaited {what}, but the client is synchronous: nothing can answer it there. "
        "Use the asynchronous client, or a stage that does not await."
    )


def _link(stage: Stage, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    link = stage(events)
    if isinstance(link, AsyncIterator):
        return link
    if isinstance(link, Coroutine):
        link.close()
    name = getattr(stage, "__qualname__", repr(stage))
    raise ConfigurationError(f"stages: {name} {NOT_A_STAGE}")
