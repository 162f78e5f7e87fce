from __future__ import annotations

from pathlib import Path

import pytest

from pgq_core.errors import InvalidSettings
from pgq_tui.supervisor.definitions import PoolDefinition, load_pools
from pgq_tui.supervisor.errors import PoolsFileMissing


def write(directory: Path, text: str) -> Path:
    path = directory / "pools.toml"
    path.write_text(text)
    return path


def test_a_file_with_every_field_is_read_as_written(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [pools.web]
        app = "shop.tasks"
        queues = ["emails", "billing"]
        concurrency = 4
        wanted = 2
        minimum = 1
        maximum = 8
        cwd = "app"
        grace = 12.5
        env = { SMTP_HOST = "localhost", SMTP_PORT = 25 }

        [pools.images]
        app = "shop.images"
        """,
    )

    web, images = load_pools(path)

    assert web == PoolDefinition(
        name="web",
        app="shop.tasks",
        queues=("emails", "billing"),
        concurrency=4,
        wanted=2,
        minimum=1,
        maximum=8,
        cwd=tmp_path / "app",
        grace=12.5,
        env={"SMTP_HOST": "localhost", "SMTP_PORT": "25"},
    )
    assert (images.queues, images.wanted, images.cwd) == (("default",), 1, None)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[pools.web]\n", "pools.web.app: Field required"),
        ('[pools.web]\napp = "a"\ncommand = "rm"\n', "pools.web.command: Extra inputs"),
        ('[pools.web]\napp = "a"\nname = "b"\n', "pools.web.name: the name of a pool is the name of its table"),
        (
            '[pools.web]\napp = "a"\nwanted = 5\nmaximum = 2\n',
            "wanted (5) must lie between minimum (0) and maximum (2)",
        ),
        ('[pools."a b"]\napp = "a"\n', "pools.a b.name: String should match"),
        ('[pools.web]\napp = "a"\nqueues = []\n', "pools.web.queues"),
        ('[web]\napp = "a"\n', "expected only tables like [pools.NAME]"),
        ('pools = "web"\n', "expected only tables like [pools.NAME]"),
        ("[pools]\nweb = 3\n", "pools.web must be a table"),
        ("[pools.web\n", "line 1"),
    ],
)
def test_a_faulty_file_is_refused_in_one_sentence_that_names_the_place(tmp_path: Path, text: str, fault: str) -> None:
    path = write(tmp_path, text)

    with pytest.raises(InvalidSettings) as refused:
        load_pools(path)

    assert fault in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_missing_file_says_what_it_is_for(tmp_path: Path) -> None:
    with pytest.raises(PoolsFileMissing, match=r"does not exist; it says what this host's pools execute"):
        load_pools(tmp_path / "pools.toml")


@pytest.mark.parametrize(("wanted", "allowed"), [(-3, 1), (0, 1), (2, 2), (99, 4)])
def test_limits_of_the_host_hold_whatever_the_table_says(wanted: int, allowed: int) -> None:
    pool = PoolDefinition(name="web", app="a", minimum=1, maximum=4)

    assert pool.clamped(wanted) == allowed
