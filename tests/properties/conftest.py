"""The machine is no test module, but what it asserts is to be readable when it fails."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.properties.life")
