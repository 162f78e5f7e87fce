"""Failures of one kind share a fingerprint, whatever numbers and names they mention."""

from __future__ import annotations

import pytest

from pgq_core.domain.fingerprint import fingerprint, normalise_error


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("user 42 not found", "user 7 not found"),
        ("order 6f1e3c1a-8a55-4b56-9d0a-5a1b8c9d0e1f is gone", "order 00000000-0000-0000-0000-000000000000 is gone"),
        ("no such file: '/srv/app/a.txt'", "no such file: '/tmp/b'"),
        ("cannot open /var/lib/x/1 now", "cannot open /home/someone/file now"),
        ("connect to 10.0.0.1:5432 failed", "connect to 192.168.17.4:80 failed"),
        ("timeout of db-3.internal:5432", "timeout of cache.example.org:6379"),
        ("mail to a@example.org bounced", "mail to someone.else@other.example bounced"),
        ("GET https://a.example/x?id=1 failed", "GET http://b.example/ failed"),
        ("object at 0x7f00aa", "object at 0x10"),
        ('key "a" missing\nsecond line', 'key "b" missing\nother'),
        ("took 1.5 s", "took 30 s"),
    ],
)
def test_changing_details_make_no_difference(one: str, other: str) -> None:
    assert normalise_error(one) == normalise_error(other)
    assert fingerprint("t", "ValueError", one, "a.py:f") == fingerprint("t", "ValueError", other, "a.py:f")


def test_type_class_frame_and_words_make_a_difference() -> None:
    prints = {
        fingerprint("t", "ValueError", "user is gone", "a.py:f"),
        fingerprint("u", "ValueError", "user is gone", "a.py:f"),
        fingerprint("t", "KeyError", "user is gone", "a.py:f"),
        fingerprint("t", "ValueError", "user is locked", "a.py:f"),
        fingerprint("t", "ValueError", "user is gone", "a.py:g"),
        fingerprint("t", None, "user is gone", None),
    }

    assert len(prints) == 6
    assert all(len(text) == 12 and int(text, 16) >= 0 for text in prints)


@pytest.mark.parametrize(
    "hostile", ["\ud800", "\x00" * 5000, "a." * 500_000, "'" * 100_000, "/a" * 100_000, "-" * 10**6, "1." * 10**5]
)
@pytest.mark.timeout(60)  # a runaway pattern would take hours
def test_hostile_text_has_a_fingerprint_soon(hostile: str) -> None:
    assert fingerprint(hostile, hostile, hostile, hostile)
