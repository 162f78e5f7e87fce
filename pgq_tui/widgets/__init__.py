"""The building blocks of the screens. They are given values and send messages; none knows a database."""

from __future__ import annotations

from pgq_tui.widgets.choice_dialog import ChoiceDialog
from pgq_tui.widgets.confirm_dialog import ConfirmDialog
from pgq_tui.widgets.detail_pane import DetailPane
from pgq_tui.widgets.help_overlay import HelpOverlay
from pgq_tui.widgets.input_dialog import InputDialog
from pgq_tui.widgets.panel import Panel
from pgq_tui.widgets.row_table import RowTable
from pgq_tui.widgets.status_bar import HeaderBar, KeyHints, StatusLine, TabStrip
from pgq_tui.widgets.tail_view import TailView
from pgq_tui.widgets.text_dialog import TextDialog
from pgq_tui.widgets.text_view import TextView
from pgq_tui.widgets.time_chart import TimeChart

__all__ = [
    "HeaderBar",
    "TabStrip",
    "StatusLine",
    "KeyHints",
    "Panel",
    "TimeChart",
    "RowTable",
    "TailView",
    "TextView",
    "DetailPane",
    "ConfirmDialog",
    "ChoiceDialog",
    "InputDialog",
    "TextDialog",
    "HelpOverlay",
]
