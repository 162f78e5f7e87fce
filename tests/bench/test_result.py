"""What a benchmark shows and writes: warnings, tables, JSON, pictures."""

from __future__ import annotations

import io
import json
import mmap
import os
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from pgq_core.bench.figures import Spread
from pgq_core.bench.machine import Machine, postmaster_of, this_machine, usage_of
from pgq_core.bench.metrics import BY_NAME, METRICS
from pgq_core.bench.options import Work
from pgq_core.bench.pictures import draw
from pgq_core.bench.result import Conditions, Measurement, Report, ScenarioResult, VariantResult
from pgq_core.bench.svg import Bar, BarPanel, picture
from pgq_core.bench.table import conditions_text, scenario_table
from pgq_core.errors import InvalidSettings

DURABLE = {"server_version": "18.0", "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
MACHINE = Machine("Linux 6", "Some <CPU> & more", 4, 8 * 2**30, "3.12.1")


def conditions(load: float = 0.1, **server: str) -> Conditions:
    return Conditions(datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "pgq-tui 1", MACHINE, DURABLE | server, load)


def result(**values: list[float]) -> ScenarioResult:
    rounds = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    series = {"throughput": [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]}
    measured = tuple(Measurement(row, series, {"jobs": 385.0, "job_stats": 0.2}) for row in rounds)
    return ScenarioResult("drain", "some jobs", (VariantResult("few", measured), VariantResult("none", ())))


def shown(renderable: object) -> str:
    out = io.StringIO()
    Console(file=out, width=160, color_system=None).print(renderable)
    return out.getvalue()


@pytest.mark.parametrize("name", ["fsync", "synchronous_commit", "full_page_writes"])
def test_server_that_forgets_commits_is_pointed_out(name: str) -> None:
    text = conditions_text(conditions(**{name: "off"})).plain

    assert f"{name} is off: do not compare" in text


def test_durable_server_on_a_quiet_machine_gives_no_warning() -> None:
    text = conditions_text(conditions()).plain

    assert "do not compare" not in text
    assert "busy" not in text
    assert "2026-01-02" in text
    assert "fsync on" in text


def test_busy_machine_is_pointed_out() -> None:
    assert "busy before the start: load 3.0" in conditions_text(conditions(load=3.0)).plain


def test_table_shows_median_and_spread_in_the_shown_unit() -> None:
    text = shown(scenario_table(result(rate=[1000.0, 3000.0, 2000.0], start_p99=[0.001, 0.003, 0.002])))

    assert "2,000 (1,000–3,000)" in text
    assert "2.00 (1.00–3.00)" in text
    assert "median of 3 rounds" in text


def test_table_leaves_relations_below_a_byte_out() -> None:
    text = shown(scenario_table(result(rate=[1.0])))

    assert "385" in text
    assert "job_stats" not in text


def test_failure_of_a_round_is_shown() -> None:
    failed = ScenarioResult("drain", "some jobs", (), ("round 1, few: worker 0 ended",))

    assert "failed: round 1, few: worker 0 ended" in shown(scenario_table(failed))


def test_json_holds_every_round_and_the_conditions(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"

    Report(conditions(), (result(rate=[1.0, 2.0]),)).write_json(file)

    written = json.loads(file.read_text())
    assert [r["values"]["rate"] for r in written["scenarios"][0]["variants"][0]["rounds"]] == [1.0, 2.0]
    assert written["conditions"]["server"]["fsync"] == "on"
    assert written["conditions"]["taken_at"] == "2026-01-02T03:04:00+00:00"


def test_picture_is_well_formed_whatever_names_hold() -> None:
    drawn = draw(Report(conditions(), (result(rate=[10.0, 20.0], start_p99=[0.1, 0.2]),)))

    root = ET.fromstring(drawn)
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert any("Some <CPU> & more" in (text or "") for text in texts)
    assert any(element.tag.endswith("polyline") for element in root.iter())


def test_longest_bar_ends_inside_the_picture() -> None:
    panel = BarPanel("x", [Bar("a", Spread(5.0, 5.0, 900.0)), Bar("b", Spread(1.0, 1.0, 1.0), is_ours=False)])

    root = ET.fromstring(picture("t", "s", [panel]))

    width = float(root.attrib["viewBox"].split()[2])
    for element in root.iter():
        if element.tag.endswith("rect") and "x" in element.attrib:
            assert float(element.attrib["x"]) + float(element.attrib["width"]) < width


def test_every_metric_has_one_name() -> None:
    assert len(BY_NAME) == len(METRICS)


@pytest.mark.parametrize("text", ["", "nothing", "sleep", "sleep:", "sleep:-1", "sleep:1e9"])
def test_unknown_handler_is_refused_in_words(text: str) -> None:
    with pytest.raises(InvalidSettings, match="write noop, thread or sleep:MILLISECONDS"):
        Work.parse(text)


@pytest.mark.parametrize("text", ["noop", "thread", "sleep:2.5"])
def test_handler_is_written_as_it_is_read(text: str) -> None:
    assert str(Work.parse(text)) == text


def test_what_is_measured_with_is_not_measured(tmp_path: Path) -> None:
    size = 64 * 2**20
    file = tmp_path / "stamps"
    file.write_bytes(b"x" * size)
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as memory:
        assert memory.find(b"y") == -1  # now every page of it is here
        whole = usage_of([os.getpid()]).largest_rss
        without = usage_of([os.getpid()], apart_from=file).largest_rss

    assert 0.9 * size < whole - without <= size


def test_machine_is_described_and_the_own_process_found() -> None:
    assert this_machine().cores >= 1
    assert usage_of([os.getpid()]).largest_rss > 0
    assert usage_of([2**22 + 1]).cpu == 0
    assert postmaster_of(os.getpid()) is None
