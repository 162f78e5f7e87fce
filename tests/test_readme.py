"""The README says what is true: its claim statement, settings and proofs are looked up in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pgq_core.settings import Settings
from pgq_core.sql import query_text

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_shows_the_claim_statement_as_it_stands_in_its_file() -> None:
    blocks = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)

    assert query_text("claim_jobs").strip() in [block.strip() for block in blocks]


def test_readme_names_every_setting() -> None:
    variables = {f"PGQ_{name.upper()}" for name in Settings.model_fields}
    variables -= {"PGQ_DB_SCHEMA", "PGQ_QUEUES"}
    variables |= {"PGQ_SCHEMA", "PGQ_QUEUE", "DATABASE_URL"}

    assert sorted(name for name in variables if f"`{name}`" not in README) == []


PROOFS = re.findall(r"\[`(test_\w+)`\]\((tests/[\w/]+\.py)\)", README)


def test_readme_gives_a_proof_for_its_promises() -> None:
    assert len(PROOFS) >= 12


@pytest.mark.parametrize(("test", "file"), PROOFS)
def test_each_proof_named_in_the_readme_exists(test: str, file: str) -> None:
    assert re.search(rf"def {test}\(", (ROOT / file).read_text(encoding="utf-8"))


LINKS = re.findall(r"\]\((?!https?:)([\w./-]+)\)", README)


@pytest.mark.parametrize("target", sorted(set(LINKS)))
def test_each_link_of_the_readme_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()
