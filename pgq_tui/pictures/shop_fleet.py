"""The pools and workers of the shop: one that crashes, one that drains, one on another host."""

from __future__ import annotations

from datetime import timedelta

from pgq_core.domain.snapshot import PoolView, SupervisorView, WorkerView
from pgq_tui.pictures.shop_clock import HOST, NOW, REMOTE, TYPES, ago


def shop_supervisor(host: str, pid: int, pools: tuple[str, ...]) -> SupervisorView:
    return SupervisorView(host, f"{host}-{pid}", pid, pools, ago(hours=2, minutes=10), ago(seconds=1), False, False)


def _pool(
    name: str, queues: str, *, wanted: int, alive: int, host: str = HOST, concurrency: int = 10, **more: object
) -> PoolView:
    facts: dict[str, object] = {
        "minimum": 0,
        "maximum": 16,
        "state": "ok",
        "state_detail": None,
        "retry_at": None,
        "restarts": 0,
        "draining": 0,
        "has_supervisor": True,
        **more,
    }
    return PoolView(
        host=host,
        name=name,
        queues=tuple(queues.split(",")),
        concurrency=concurrency,
        wanted=wanted,
        alive=alive,
        **facts,  # type: ignore[arg-type]  # the rest by name
    )


def shop_pools() -> list[PoolView]:
    return [
        _pool(
            "images",
            "images",
            wanted=2,
            alive=1,
            concurrency=4,
            state="crash_loop",
            restarts=6,
            state_detail="SIGKILL 6 times in 2 minutes",
            retry_at=NOW + timedelta(seconds=32),
        ),
        _pool("mail", "emails", wanted=2, alive=2),
        _pool("shop", "invoices,default", wanted=1, alive=2, draining=1, concurrency=9, restarts=1),
        _pool("reports", "reports", wanted=1, alive=1, concurrency=2, host=REMOTE),
    ]


def _worker(
    name: str, pool: str, queues: str, *, busy: int, slots: int, host: str = HOST, **more: object
) -> WorkerView:
    facts: dict[str, object] = {
        "pid": 4200 + sum(map(ord, name)) % 700,
        "state": "running",
        "wanted": "run",
        "heartbeat_at": ago(seconds=2),
        "stopped_at": None,
        "exit_code": None,
        "exit_signal": None,
        "exit_reason": None,
        "finished": 18_204,
        "failed": 211,
        "late_writes": 0,
        "cpu_percent": 12.0,
        "rss_bytes": 86 * 1024**2,
        "is_stale": False,
        "version": "0.1.0",
        "started_at": ago(hours=2, minutes=10),
        "supervisor_id": f"{host}-4120",
        **more,
    }
    types = tuple(sorted({job_type for queue, job_type, _ in TYPES if queue in queues}))
    return WorkerView(
        id=f"{host}-{pool}-{name}",
        host=host,
        pool=pool,
        queues=tuple(queues.split(",")),
        job_types=types,
        concurrency=slots,
        running=busy,
        **facts,  # type: ignore[arg-type]  # the rest by name
    )


def shop_workers() -> list[WorkerView]:
    return [
        _worker(
            "1f20c9aa",
            "images",
            "images",
            busy=4,
            slots=4,
            cpu_percent=88.2,
            rss_bytes=912 * 1024**2,
            finished=3_120,
            failed=41,
            started_at=ago(minutes=1, seconds=12),
        ),
        _worker(
            "90d2be04",
            "images",
            "images",
            busy=0,
            slots=4,
            state="crashed",
            stopped_at=ago(seconds=28),
            pid=4871,
            exit_code=None,
            exit_signal="SIGKILL",
            exit_reason="killed by SIGKILL",
            cpu_percent=None,
            rss_bytes=None,
            finished=87,
            failed=1,
            started_at=ago(minutes=1),
            heartbeat_at=ago(seconds=28),
        ),
        _worker("5b0e77d1", "mail", "emails", busy=10, slots=10, cpu_percent=31.0, failed=4_120),
        _worker("c83311f7", "mail", "emails", busy=8, slots=10, cpu_percent=27.4, failed=3_988),
        _worker("07aa51de", "shop", "invoices,default", busy=2, slots=9, cpu_percent=9.1, finished=9_120, failed=12),
        _worker(
            "e2d90b13",
            "shop",
            "invoices,default",
            busy=0,
            slots=9,
            state="draining",
            wanted="drain",
            cpu_percent=0.4,
            finished=8_870,
            failed=9,
        ),
        _worker(
            "44c0a6f2",
            "reports",
            "reports",
            busy=1,
            slots=2,
            host=REMOTE,
            cpu_percent=64.0,
            rss_bytes=310 * 1024**2,
            finished=412,
            failed=0,
            started_at=ago(days=9),
        ),
    ]
