"""The shop's handlers do real work, and a second run of the same job changes nothing."""

from __future__ import annotations

import json
import smtplib
import socket
import threading
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from pgq_core.domain.job import Job
from pgq_core.errors import MalformedData
from pgq_tui.demo import mail, pictures, shop
from pgq_tui.demo.pictures import picture_path, resize_picture
from pgq_tui.demo.statements import shop_statement


@pytest.fixture
async def conn(empty_dsn: str) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(empty_dsn, autocommit=True) as connection:
        await connection.execute(shop_statement("create_shop"))
        yield connection


@pytest.fixture(autouse=True)
def picture_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_PICTURES", str(tmp_path / "pictures"))
    monkeypatch.delenv("SMTP_HOST", raising=False)
    return tmp_path / "pictures"


def job(job_type: str, data: dict[str, Any]) -> Job:
    return Job(id=7, queue="emails", type=job_type, data=data)


async def test_mail_goes_into_the_outbox_once_however_often_it_runs(conn: AsyncConnection[Any]) -> None:
    data = {"to": "a@example.org", "order": 12, "items": 3}

    for _ in range(2):
        async with conn.transaction():
            await shop.order_confirmation(data, job("order_confirmation", data), conn)

    rows = await (await conn.execute("SELECT job_key, recipient, subject FROM shop.outbox")).fetchall()
    assert rows == [("job-7", "a@example.org", "Order 12")]


async def test_mail_of_a_job_that_is_rolled_back_is_not_sent(conn: AsyncConnection[Any]) -> None:
    data = {"to": "a@example.org"}

    async with conn.transaction(force_rollback=True):
        await shop.password_reset(data, job("password_reset", data), conn)

    assert await (await conn.execute("SELECT count(*) FROM shop.outbox")).fetchone() == (0,)


async def test_mail_goes_to_the_smtp_host_when_one_is_set(
    conn: AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with SmtpHost() as host:
        monkeypatch.setenv("SMTP_HOST", "127.0.0.1")
        monkeypatch.setenv("SMTP_PORT", str(host.port))

        await mail.deliver(mail.Mail("a@example.org", "Grüße", "Hello\n.\nthere"), "job-9", conn)

    assert "Message-ID: <job-9@example.org>" in host.received
    assert "To: a@example.org" in host.received
    assert await (await conn.execute("SELECT count(*) FROM shop.outbox")).fetchone() == (0,)


async def test_an_smtp_host_that_refuses_fails_the_job(
    conn: AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMTP_HOST", "127.0.0.1")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("SMTP_PORT", str(unused.getsockname()[1]))

        with pytest.raises((OSError, smtplib.SMTPException)):
            await mail.deliver(mail.Mail("a@example.org", "x", "y"), "job-9", conn)


async def test_an_invoice_is_billed_once_with_exact_money(conn: AsyncConnection[Any]) -> None:
    lines = [{"article": "cup", "quantity": 3, "price": "0.10"}, {"article": "pot", "quantity": 1, "price": "19.99"}]
    order = shop.invoice.bind(json.dumps({"number": "R-1", "customer": 5, "lines": lines}))

    for _ in range(2):
        result = await shop.invoice(order, conn)  # type: ignore[arg-type]  # bound to its model

    assert result == {"number": "R-1", "total": Decimal("20.29")}
    rows = await (await conn.execute("SELECT number, customer, total FROM shop.invoices")).fetchall()
    assert rows == [("R-1", 5, Decimal("20.29"))]


@pytest.mark.parametrize("price", ["0", "-1", "0.001", "NaN", "x"])
def test_an_invoice_over_nonsense_is_refused_at_the_door(price: str) -> None:
    with pytest.raises(MalformedData):
        shop.invoice.encode(
            {"number": "R-1", "customer": 5, "lines": [{"article": "a", "quantity": 1, "price": price}]}
        )


def test_a_picture_is_real_and_a_second_run_changes_nothing() -> None:
    from PIL import Image

    path = resize_picture("s3://shop/1.jpg", 64)
    before = path.stat()

    assert resize_picture("s3://shop/1.jpg", 64) == path == picture_path("s3://shop/1.jpg", 64)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    with Image.open(path) as picture:
        picture.verify()
        assert picture.size == (64, 64)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_without_pillow_there_is_a_picture_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    monkeypatch.setattr(pictures, "HAS_PILLOW", False)
    with Image.open(resize_picture("s3://shop/2.jpg", 48)) as picture:
        picture.load()
        assert picture.size == (48, 48)
        assert len(picture.convert("RGB").getcolors(48 * 48) or []) > 10


def test_poison_fails_every_time() -> None:
    with pytest.raises(KeyError, match="shelf"):
        shop.sync_to_warehouse({"order": 1})


class SmtpHost:
    """The smallest server that takes one mail."""

    def __enter__(self) -> SmtpHost:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.received = ""
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(60)
        self._socket.close()

    def _serve(self) -> None:
        connection, _ = self._socket.accept()
        with connection, connection.makefile("rb") as lines:
            connection.sendall(b"220 test\r\n")
            is_data = False
            for line in lines:
                self.received += line.decode()
                if is_data:
                    is_data = line != b".\r\n"
                    if not is_data:
                        connection.sendall(b"250 taken\r\n")
                elif line.upper().startswith(b"DATA"):
                    is_data = True
                    connection.sendall(b"354 go on\r\n")
                elif line.upper().startswith(b"QUIT"):
                    connection.sendall(b"221 bye\r\n")
                    return
                else:
                    connection.sendall(b"250 ok\r\n")
