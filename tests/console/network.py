"""A network between console and database that can be cut, or fall silent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class Network:
    """Passes bytes on to the server of `dsn`; `address` is the same database behind it."""

    def __init__(self, dsn: str) -> None:
        self._target = conninfo_to_dict(dsn)
        self._pairs: list[asyncio.StreamWriter] = []
        self._passes = asyncio.Event()
        self._passes.set()
        self._refuses = False
        self._server: asyncio.Server | None = None
        self.address = ""

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        parts = {name: self._target[name] for name in ("user", "dbname", "password") if self._target.get(name)}
        self.address = make_conninfo("", host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable", **parts)

    async def close(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()

    def swallow(self) -> None:
        """From now on nothing arrives any more, in no direction; connections stay as they are."""
        self._passes.clear()

    def cut(self) -> None:
        """All connections end, and new ones are refused."""
        self._refuses = True
        for writer in self._pairs:
            writer.transport.abort()
        self._pairs.clear()

    def mend(self) -> None:
        self._refuses = False
        self._passes.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        host, port = str(self._target.get("host") or "127.0.0.1"), int(self._target.get("port") or 5432)
        if host.startswith("/"):
            server_reader, server_writer = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            server_reader, server_writer = await asyncio.open_connection(host, port)
        self._pairs += [writer, server_writer]
        await asyncio.gather(self._pass(reader, server_writer), self._pass(server_reader, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, OSError):
            while data := await reader.read(65536):
                await self._passes.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def network_to(dsn: str) -> AsyncIterator[Network]:
    network = Network(dsn)
    await network.open()
    try:
        yield network
    finally:
        await network.close()
