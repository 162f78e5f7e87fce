"""A network between workers and server that delays, cuts, or swallows every packet without a word."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

CHUNK = 65536


class Proxy:
    """TCP in its own thread and loop, so that a busy test does not slow it. Verbs may be called from any thread."""

    def __init__(self, target: str) -> None:
        """`target`: the URL of a server over TCP."""
        self._target = urlsplit(target)
        self._loop = asyncio.new_event_loop()
        self._passes = asyncio.Event()
        self._passes.set()
        self._delay = 0.0
        self._refuses = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.swallowed = 0
        """Bytes that arrived while nothing was passed on."""
        self.refused = 0
        """Connections that were asked for while there was nobody."""
        self.opened = 0
        """Connections that somebody took, whatever became of them."""
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, "127.0.0.1", 0))
        port = self._server.sockets[0].getsockname()[1]
        user = self._target.netloc.rpartition("@")[0]
        self.url = urlunsplit(self._target._replace(netloc=f"{user}@127.0.0.1:{port}"))

    def delay(self, seconds: float) -> None:
        """Each packet takes so long, in each direction."""
        self._delay = seconds

    def swallow(self) -> None:
        """Nothing arrives any more; every connection stays open and acknowledges what it is sent."""
        self._loop.call_soon_threadsafe(self._passes.clear)

    def pass_new_ones(self) -> None:
        """What is open stays silent for good, without a reset; whoever connects again gets through."""
        self._loop.call_soon_threadsafe(self._turn_deaf)

    def cut(self) -> None:
        """All connections end by a reset, and new ones are refused."""
        self._refuses = True
        self._loop.call_soon_threadsafe(self._abort)

    def mend(self) -> None:
        """As in the beginning. What was swallowed stays lost: its connections end."""
        self._refuses, self._delay = False, 0.0
        self._loop.call_soon_threadsafe(self._abort)
        self._loop.call_soon_threadsafe(self._passes.set)

    def close(self) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        for task in self._tasks:
            task.cancel()

    def _turn_deaf(self) -> None:
        self._passes = asyncio.Event()
        self._passes.set()

    async def _close(self) -> None:
        self._server.close()
        self._abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0.05)  # aborted transports close in the loop's next turns

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            self.refused += 1
            writer.transport.abort()
            return
        self.opened += 1
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            self._writers.add(writer)
            server = await asyncio.open_connection(self._target.hostname, self._target.port)
            self._writers.add(server[1])
            passes = self._passes
            await asyncio.gather(self._pass(reader, server[1], passes), self._pass(server[0], writer, passes))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passes: asyncio.Event) -> None:
        with contextlib.suppress(ConnectionError, OSError):
            while data := await reader.read(CHUNK):
                if not passes.is_set():
                    self.swallowed += len(data)
                    continue
                if self._delay:
                    await asyncio.sleep(self._delay)
                writer.write(data)
                await writer.drain()
        writer.close()


@contextlib.contextmanager
def proxy_to(target: str) -> Iterator[Proxy]:
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
