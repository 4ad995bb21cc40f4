"""The application of a model that runs here: it answers from the start, and loads its model meanwhile."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from streamsieve.backends.local.engine.engine import Health
from streamsieve.backends.local.engine.stats import Stats
from streamsieve.backends.local.model.progress import Progress
from streamsieve.backends.local.server.metrics import Metrics
from streamsieve.backends.local.server.routes import Routes
from streamsieve.backends.local.server.runtime import Runtime
from streamsieve.backends.openai_error import ApiError, error_handlers

DRAIN_SECONDS = 10.0
"""What replies have to end in when the server stops."""

_RETRY_SECONDS = 5
_REQUEST_ID = "x-request-id"
_LONGEST_ID = 128

logger = logging.getLogger(__name__)


class State(Enum):
    """What `/health` tells."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"
    CLOSED = "closed"


class LocalBackend:
    """An ASGI application. The model is loaded on a thread that the lifespan starts, so a lifespan has to run.

    `load` makes the runtime, telling its progress; `report` is told the same. `failed` is called on the loading
    thread with what `load` raised; the application then answers 503 for good.
    """

    def __init__(
        self,
        load: Callable[[Progress], Runtime],
        *,
        report: Progress = lambda stage, percent: None,
        failed: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self._load, self._report, self._failed = load, report, failed
        self._lock = threading.Lock()
        self._state = State.LOADING
        self._runtime: Runtime | None = None
        self._stage, self._percent = "starting", 0.0
        self.failure: Exception | None = None
        """What `load` raised."""
        routes = Routes(self._ready, Metrics(self._stats))
        self._app = Starlette(
            routes=[Route("/health", self._health), *routes.all()],
            lifespan=self._lifespan,
            exception_handlers=error_handlers(),
        )

    @property
    def is_ready(self) -> bool:
        """Whether the model is there."""
        return self._state is State.READY

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Every answer has a request id: the client's, or a new one."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault(_REQUEST_ID, request_id)
            await send(message)

        await self._app(scope, receive, send_with_id)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=self._start, name="streamsieve-loading", daemon=True).start()
        try:
            yield
        finally:
            await self.drain()

    async def drain(self) -> None:
        """Take no more requests, and end what is not written after `DRAIN_SECONDS` with an error. The end of the
        lifespan does it too, but servers cut connections before that."""
        with self._lock:
            self._state, runtime = State.CLOSED, self._runtime
        if runtime is not None:
            await runtime.engine.drain(DRAIN_SECONDS)

    def _start(self) -> None:
        """Load the model; on a thread of its own, since it takes as long as it takes."""
        try:
            runtime = self._load(self._progress)
        except Exception as error:
            self.failure = error
            self._state = State.FAILED
            logger.debug("the model cannot be loaded", exc_info=error)
            self._failed(error)
            return
        with self._lock:
            closed = self._state is State.CLOSED
            if not closed:
                self._runtime, self._state = runtime, State.READY
        if closed:
            runtime.engine.stop()
        else:
            self._progress("ready", 100.0)

    def _progress(self, stage: str, percent: float) -> None:
        self._stage, self._percent = stage, percent
        self._report(stage, percent)

    def _ready(self) -> Runtime:
        """The runtime; ApiError (503) while there is none."""
        runtime = self._runtime
        if runtime is not None:
            return runtime
        if self._state is State.FAILED:
            raise ApiError(503, "The model could not be loaded.", "server_error", code="model_not_loaded")
        message = f"The model is being loaded: {self._stage}, {self._percent:.0f} %."
        headers = {"retry-after": str(_RETRY_SECONDS)}
        raise ApiError(503, message, "server_error", code="model_loading", headers=headers)

    def _stats(self) -> Stats | None:
        return None if self._runtime is None else self._runtime.engine.stats()

    async def _health(self, request: Request) -> Response:
        """200 where requests are answered; 503 with the stage while loading, and when the engine is dead."""
        body: dict[str, object] = {"status": self._state.value}
        engine = self._runtime.engine if self._runtime is not None else None
        match self._state:
            case State.READY if engine is not None and engine.health is Health.READY:
                stats = engine.stats()
                return JSONResponse(body | {"running": stats.running, "queued": stats.queued})
            case State.READY if engine is not None:
                body["status"] = engine.health.value
            case State.LOADING:
                body |= {"stage": self._stage, "percent": round(self._percent, 1)}
        return JSONResponse(body, status_code=503, headers={"retry-after": str(_RETRY_SECONDS)})


def _request_id(scope: Scope) -> str:
    given = dict(scope["headers"]).get(_REQUEST_ID.encode(), b"")
    is_fit = 0 < len(given) <= _LONGEST_ID and given.isascii() and given.decode("ascii").isprintable()
    return given.decode("ascii") if is_fit else uuid.uuid4().hex
