"""What keeper and runner share of a worker goes with it."""

from __future__ import annotations

import psutil

from pgq_core.worker.marks import Marks


def test_closed_marks_keep_no_descriptor_though_somebody_still_has_them() -> None:
    own = psutil.Process()
    before = own.num_fds()
    marks = [Marks.create(concurrency=4) for _ in range(10)]
    assert own.num_fds() > before

    for each in marks:
        each.close()

    assert own.num_fds() == before
