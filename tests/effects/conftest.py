"""What the examples have their effects on: accounts, a directory, a service that charges cards."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.queue_database import QueueDatabase


class Payments:
    """Charges once per idempotency key, as payment providers do, and answers a repetition as the first time."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.charges: list[tuple[str, int]] = []
        self._answers: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def charge(self, key: str, body: bytes) -> bytes:
        with self._lock:
            self.requests[key] += 1
            if key not in self._answers:
                order = json.loads(body)
                self.charges.append((order["card"], order["amount"]))
                self._answers[key] = json.dumps({"charge": len(self.charges)}).encode()
            return self._answers[key]


@pytest.fixture
def payments(monkeypatch: pytest.MonkeyPatch) -> Iterator[Payments]:
    service = Payments()

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = service.charge(self.headers["Idempotency-Key"], body)
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("PAYMENTS_URL", f"http://127.0.0.1:{server.server_port}/charges")
        yield service
        server.shutdown()
        thread.join(60)


@pytest.fixture
def exports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    directory = tmp_path / "exports"
    directory.mkdir()
    monkeypatch.setenv("EXPORTS", str(directory))
    return directory


@pytest.fixture
def database(dsn: str) -> Iterator[QueueDatabase]:
    database = QueueDatabase(dsn)
    database.run("CREATE TABLE public.accounts (name text PRIMARY KEY, balance int NOT NULL)")
    yield database
    database.close()
