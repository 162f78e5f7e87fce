"""docs/rights.md word for word: with these grants each role can do its work, and nothing beyond."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import pytest

from pgq_core.api.app import create_app
from pgq_core.api.context import ApiContext
from pgq_core.api.settings import load_api_settings
from pgq_core.maintenance.leadership import Leadership
from pgq_core.maintenance.partitions import ExpiredPartitions
from pgq_core.maintenance.retention import Retention
from pgq_core.migrate import check_schema, migrate
from pgq_core.queries import Queries
from pgq_core.queries.claims import BuriedJob, FinishedJob, RescheduledJob
from pgq_core.settings import load_settings
from tests.schema.roles import dsn_of, new_role
from tests.schema.sessions import Session, row, session, value
from tests.schema.statements import PREPARED, explain
from tests.support.databases import database_name, new_database

PAGE = Path(__file__).parents[2] / "docs" / "rights.md"
SCHEMA = "q x"
QUERIES = Queries(SCHEMA)
NAMES = ("pgq_producer", "pgq_plain_producer", "pgq_worker", "pgq_operator", "pgq_reader")


@dataclass(frozen=True)
class Granted:
    """A database migrated by its owner into schema `q x`, and the roles that the page was run for."""

    owner_dsn: str
    roles: dict[str, str]
    admin_dsn: str

    def dsn(self, name: str) -> str:
        return dsn_of(self.roles[name], self.admin_dsn, options="-c search_path=")


@contextlib.contextmanager
def migrated_and_granted(dsn: str) -> Iterator[Granted]:
    with contextlib.ExitStack() as stack:
        owner = stack.enter_context(new_role(dsn))
        roles = {name: stack.enter_context(new_role(dsn)) for name in NAMES}
        with session(dsn) as admin:
            admin.execute(f'GRANT CREATE ON DATABASE "{database_name(dsn)}" TO "{owner}"')
            admin.execute("CREATE TABLE public.jobs (id int PRIMARY KEY, note text)")
        owner_dsn = dsn_of(owner, dsn)
        migrate(owner_dsn, SCHEMA)
        with session(owner_dsn) as conn:
            for block in page_blocks():
                conn.execute(for_test(block, roles))
            conn.execute(f'GRANT USAGE ON SCHEMA "{SCHEMA}" TO "{roles["pgq_plain_producer"]}"')
        yield Granted(owner_dsn, roles, dsn)


@pytest.fixture
def granted(empty_dsn: str) -> Iterator[Granted]:
    """For a test that changes something."""
    with migrated_and_granted(empty_dsn) as one:
        yield one


@pytest.fixture(scope="module")
def granted_once(server_dsn: str) -> Iterator[Granted]:
    """For tests that only ask, or are refused."""
    with new_database(server_dsn) as dsn, migrated_and_granted(dsn) as one:
        yield one


def page_blocks() -> list[str]:
    return re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def for_test(block: str, roles: dict[str, str]) -> str:
    for name in sorted(roles, key=len, reverse=True):
        block = re.sub(rf"\b{name}\b", f'"{roles[name]}"', block)
    return re.sub(r"\bpgq_core\b", f'"{SCHEMA}"', block)


def test_the_page_grants_something_to_every_role() -> None:
    text = "\n".join(page_blocks())

    assert {name for name in NAMES if name in text} == set(NAMES)


@pytest.mark.parametrize("name", ["pgq_producer", "pgq_worker", "pgq_operator", "pgq_reader"])
def test_every_role_passes_the_check_of_the_schema(granted_once: Granted, name: str) -> None:
    with session(granted_once.dsn(name)) as conn:
        check_schema(conn, SCHEMA)


def test_a_plain_producer_can_insert_and_read_nothing(granted: Granted) -> None:
    insert = f"""INSERT INTO "{SCHEMA}".jobs (queue, payload, idempotency_key)
                 VALUES ('default', '{{"type": "a"}}', 'k') ON CONFLICT (idempotency_key) DO NOTHING RETURNING id"""
    with session(granted.dsn("pgq_plain_producer")) as conn:
        assert value(conn, insert) == 1
        assert conn.execute(insert).fetchall() == []
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(f'SELECT payload FROM "{SCHEMA}".jobs')


def test_a_producer_can_enqueue_by_the_function(granted: Granted) -> None:
    with session(granted.dsn("pgq_producer")) as conn:
        call = f"""SELECT "{SCHEMA}".enqueue('a', '{{"n": 1}}', idempotency_key => 'k')"""

        assert value(conn, call) == value(conn, call) == 1


def claim(conn: Session, granted: Granted) -> tuple[int, int]:
    with session(granted.dsn("pgq_producer")) as producer:
        producer.execute(f"""SELECT "{SCHEMA}".enqueue('a', idempotency_key => gen_random_uuid()::text)""")
    claimed = QUERIES.claim_jobs(queue="default", worker_id="w", limit=1, job_types=None, lease=None)
    (job,) = claimed.fetch_all_sync(conn)
    return job.id, job.claim_token


def test_a_worker_can_claim_and_end_jobs_in_every_way(granted: Granted) -> None:
    with session(granted.dsn("pgq_worker")) as conn:
        now = value(conn, "SELECT extract(epoch FROM now())::float8")

        finished = QUERIES.finish_jobs([FinishedJob(*claim(conn, granted), now, now)], worker_id="w", slot=0)
        assert len(finished.fetch_all_sync(conn)) == 1
        back = RescheduledJob(*claim(conn, granted), "w", None, None, "retried", charge=1, delay=60.0, error="no")
        assert len(QUERIES.reschedule_jobs([back], slot=0).fetch_all_sync(conn)) == 1
        dead = BuriedJob(*claim(conn, granted), "w", None, None, "non_retryable", charge=1, error="no")
        assert len(QUERIES.bury_jobs([dead], slot=0).fetch_all_sync(conn)) == 1


def test_a_worker_makes_and_drops_partitions_without_owning_them(granted: Granted) -> None:
    with session(granted.dsn("pgq_worker")) as conn:
        assert value(conn, f"""SELECT "{SCHEMA}".ensure_run_partitions('2020-01-01', '2020-01-02')""") == 2
        assert value(conn, f"""SELECT "{SCHEMA}".drop_run_partition('2020-01-02')""") == "job_runs_20200101"
        assert value(conn, f"""SELECT "{SCHEMA}".drop_run_partition('2020-01-02')""") is None


async def test_maintenance_by_a_worker_drops_old_runs_and_frees_orphaned_keys(granted: Granted) -> None:
    settings = load_settings(dsn=granted.dsn("pgq_worker"), db_schema=SCHEMA)
    leadership = Leadership(settings)
    with session(granted.admin_dsn) as conn:
        conn.execute(f"""SELECT "{SCHEMA}".ensure_run_partitions('2020-01-01', '2020-01-01')""")
        conn.execute(f"""INSERT INTO "{SCHEMA}".job_keys VALUES ('orphan', 999, 'q', '')""")

        day = 86400.0
        await ExpiredPartitions(leadership, QUERIES, interval=60, kept=7 * day).run_once()
        await Retention(leadership, QUERIES, interval=60, dead_letters_kept=day).run_once()
        await leadership.step_down()

        assert value(conn, f"""SELECT to_regclass('"{SCHEMA}".job_runs_20200101')""") is None
        assert value(conn, f"""SELECT expires_at <= now() FROM "{SCHEMA}".job_keys WHERE key = 'orphan'""")


def test_a_finish_that_needs_a_new_partition_gets_it(granted: Granted) -> None:
    with session(granted.dsn("pgq_worker")) as conn:
        finished = QUERIES.finish_jobs([FinishedJob(*claim(conn, granted), 9.5e8, 9.5e8)], worker_id="w", slot=0)
        with pytest.raises(psycopg.errors.CheckViolation):
            finished.fetch_all_sync(conn)

        conn.execute(f"""SELECT "{SCHEMA}".ensure_run_partitions(d, d) FROM date(to_timestamp(9.5e8)) d""")

        assert len(finished.fetch_all_sync(conn)) == 1


def test_an_operator_can_replay_discard_undo_cancel_and_pause(granted: Granted) -> None:
    with session(granted.dsn("pgq_worker")) as worker:
        dead = [
            BuriedJob(*claim(worker, granted), "w", None, None, "non_retryable", charge=1, error="no") for _ in "ab"
        ]
        first, second = QUERIES.bury_jobs(dead, slot=0).fetch_all_sync(worker)
        running, _ = claim(worker, granted)
    with session(granted.dsn("pgq_operator")) as conn:
        job = value(conn, f'SELECT "{SCHEMA}".replay({first.dead_letter_id})')
        conn.execute(f'SELECT "{SCHEMA}".discard({second.dead_letter_id})')
        undone = row(conn, f'SELECT * FROM "{SCHEMA}".undo_resolutions(ARRAY[{second.dead_letter_id}::bigint])')
        assert undone["refusal"] is None
        assert value(conn, f'SELECT "{SCHEMA}".cancel({job})') == "cancelled"
        assert value(conn, f'SELECT "{SCHEMA}".cancel({running})') == "requested"
        conn.execute(f"""SELECT "{SCHEMA}".pause('default', 'a reason'), "{SCHEMA}".resume('default')""")


STATEMENTS = {
    "pgq_producer": {"enqueues": {"extend_lease"}},
    "pgq_worker": {
        "enqueues": set(),
        "claims": set(),
        "upkeep": set(),
        "clocks": set(),
        "pools": set(),
        "schema": set(),
    },
    "pgq_operator": {
        "verbs": set(),
        "reads": set(),
        "lists": set(),
        "tokens": {"add_api_token", "revoke_api_token"},
    },
    "pgq_reader": {"reads": set(), "lists": set(), "metrics": set()},
}
"""The groups of statements that a role runs, with those of them that are not for it."""


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_role_may_run_every_statement_of_its_groups(granted_once: Granted, name: str) -> None:
    refused = []
    with session(granted_once.dsn(name)) as conn:
        for group, others in STATEMENTS[name].items():
            for statement in PREPARED[group]:
                try:
                    explain(conn, statement, SCHEMA)
                except psycopg.errors.InsufficientPrivilege as error:
                    refused.append((statement, str(error).splitlines()[0]))
            refused = [(statement, why) for statement, why in refused if statement not in others]

    assert refused == []


DDL = [
    'CREATE TABLE "{schema}".mine (id int)',
    'CREATE TABLE "{schema}".job_runs_20290101 PARTITION OF "{schema}".job_runs FOR VALUES FROM (%(a)s) TO (%(b)s)',
    'ALTER TABLE "{schema}".jobs ADD COLUMN mine int',
    'ALTER TABLE "{schema}".jobs DISABLE TRIGGER ALL',
    'ALTER TABLE "{schema}".jobs DROP CONSTRAINT job_status',
    'DROP TABLE "{schema}".dead_letter_jobs',
    'DROP FUNCTION "{schema}".cancel(bigint)',
    'CREATE INDEX ON "{schema}".jobs (created_at)',
    'CREATE TRIGGER mine BEFORE INSERT ON "{schema}".jobs EXECUTE FUNCTION "{schema}".jobs_wake_workers()',
    'TRUNCATE "{schema}".jobs',
    'INSERT INTO "{schema}".schema_migrations VALUES (99, %(a)s, %(b)s, 99)',
    'DROP SCHEMA "{schema}" CASCADE',
    "INSERT INTO public.jobs VALUES (1)",
]


@pytest.mark.parametrize("name", NAMES)
def test_no_role_may_change_the_schema(granted_once: Granted, name: str) -> None:
    with session(granted_once.dsn(name)) as conn:
        for statement in DDL:
            text = statement.format(schema=SCHEMA).replace("%(a)s", "'2029-01-01'").replace("%(b)s", "'2029-01-02'")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(text)


WRITABLE = """
SELECT table_name || ' ' || privilege_type AS right
  FROM information_schema.table_privileges
 WHERE table_schema = %s AND grantee = %s AND privilege_type <> 'SELECT'
 ORDER BY 1
"""


def test_a_reader_may_write_nothing_and_a_producer_only_jobs(granted_once: Granted) -> None:
    with session(granted_once.owner_dsn) as conn:
        written = {
            name: [found["right"] for found in conn.execute(WRITABLE, (SCHEMA, granted_once.roles[name])).fetchall()]
            for name in ("pgq_reader", "pgq_producer", "pgq_plain_producer")
        }

    assert written == {"pgq_reader": [], "pgq_producer": ["jobs INSERT"], "pgq_plain_producer": ["jobs INSERT"]}


def test_partitions_are_made_by_those_who_were_allowed_to(granted_once: Granted) -> None:
    for name in ("pgq_producer", "pgq_plain_producer", "pgq_reader"):
        with session(granted_once.dsn(name)) as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(f"""SELECT "{SCHEMA}".ensure_run_partitions('2031-01-01', '2031-01-01')""")
    with session(granted_once.dsn("pgq_operator")) as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute(f"""SELECT "{SCHEMA}".drop_run_partition('2031-01-01')""")


def test_nobody_can_use_the_owners_rights_through_a_table_of_his_own(granted_once: Granted) -> None:
    with session(granted_once.dsn("pgq_worker")) as conn:
        conn.execute("CREATE TEMP TABLE mine (id bigint, queue text, payload jsonb, idempotency_key text)")
        for function in ("jobs_take_key", "jobs_check_key", "jobs_end_key", "dead_letters_hold_key", "end_all_keys"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(
                    f"""CREATE TRIGGER mine BEFORE INSERT ON pg_temp.mine FOR EACH ROW
                        EXECUTE FUNCTION "{SCHEMA}".{function}()"""
                )


def test_every_function_with_the_owners_rights_is_kept_from_the_public(granted_once: Granted) -> None:
    open_to_all = """SELECT proname FROM pg_proc
                      WHERE pronamespace = to_regnamespace(%s) AND prosecdef
                        AND (proacl IS NULL OR proacl::text ~ '[{,]=X')"""
    with session(granted_once.owner_dsn) as conn:
        assert conn.execute(open_to_all, (f'"{SCHEMA}"',)).fetchall() == []


def test_a_worker_of_a_role_that_may_only_look_says_what_it_lacks(granted_once: Granted) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pgq_core.cli", "--schema", SCHEMA, "worker", "--app", "tests.metrics.kinds"],
        env={**os.environ, "DATABASE_URL": granted_once.dsn("pgq_reader")},
        cwd=PAGE.parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 3, done.stderr
    assert "permission denied for table workers; grant it to this role, see docs/rights.md" in done.stderr
    assert "Traceback" not in done.stderr


async def test_an_api_of_a_role_that_may_only_look_says_what_it_lacks(granted_once: Granted) -> None:
    settings = load_settings(dsn=granted_once.dsn("pgq_reader"), db_schema=SCHEMA)
    context = ApiContext(settings, load_api_settings())
    transport = httpx.ASGITransport(create_app(context))
    async with httpx.AsyncClient(verify=False, transport=transport, base_url="http://localhost") as client:
        answers = [await client.get("/dead-jobs"), await client.post("/jobs", json={"type": "a"})]
        for connections in (context.enqueueing, context.looking):
            await connections.close()

    assert [answer.status_code for answer in answers] == [200, 403]
    assert answers[1].json()["type"] == "missing-rights"
    assert "permission denied for table" in answers[1].json()["detail"]


def test_a_role_without_grants_sees_nothing(granted_once: Granted) -> None:
    with new_role(granted_once.admin_dsn) as stranger, session(dsn_of(stranger, granted_once.admin_dsn)) as conn:
        for statement in (f'SELECT 1 FROM "{SCHEMA}".jobs', f"""SELECT "{SCHEMA}".enqueue('a')"""):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(statement)
