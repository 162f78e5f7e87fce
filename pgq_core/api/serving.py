"""Runs the API until it is told to stop: answers what it has taken on, then ends."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from typing import Final

import uvicorn
import uvloop

from pgq_core.api.app import create_app
from pgq_core.api.context import ApiContext
from pgq_core.api.settings import ApiSettings
from pgq_core.api.wire import BoundedHttp
from pgq_core.errors import InvalidSettings
from pgq_core.logs import get_logger
from pgq_core.service import run_and_leave
from pgq_core.settings import Settings

_BACKLOG: Final = 2048
_KEEP_ALIVE: Final = 15


def serve(settings: Settings, api: ApiSettings) -> None:
    """Listens until SIGTERM or SIGINT. Raises InvalidSettings when the address cannot be had."""
    with contextlib.closing(_bound(api.host, api.port)) as listening:
        run_and_leave(_serve(settings, api, listening), uvloop.new_event_loop)


async def _serve(settings: Settings, api: ApiSettings, listening: socket.socket) -> None:
    context = ApiContext(settings, api)
    config = uvicorn.Config(
        create_app(context),
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        proxy_headers=bool(api.proxies),
        forwarded_allow_ips=list(api.proxies),
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(settings.grace)),
        http=BoundedHttp,
        ws="none",
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.hear_signal, context)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    get_logger("pgq.api").info("api_listening", url=f"http://{shown}:{port}", tokens=api.asks_for_tokens)
    await server.serve(sockets=[listening])


class _Server(uvicorn.Server):
    """uvicorn's own signal handling raises the signal again at the end; a graceful stop is no failure."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def hear_signal(self, context: ApiContext) -> None:
        if self.should_exit:
            self.force_exit = True
            return
        get_logger("pgq.api").info("api_stopping")
        context.is_stopping = True
        self.should_exit = True


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InvalidSettings(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    # Accepted connections inherit it. Without it the body of an answer, a segment of its own, waits 40 ms for the
    # client's delayed acknowledgement of the head; asyncio sets it only on sockets that name their protocol's number.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listening.setblocking(False)
    return listening
