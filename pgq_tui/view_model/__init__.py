"""Everything the console formats: pure functions and plain values. No Textual, no database, no clock."""

from __future__ import annotations

from pgq_tui.view_model.chart_data import ChartData, ChartMark, ChartSeries
from pgq_tui.view_model.chrome import (
    Choice,
    Confirmation,
    ContextClass,
    Counter,
    HeaderView,
    HelpRow,
    KeyHint,
    Link,
    StatusView,
    Tab,
    TabsView,
)
from pgq_tui.view_model.detail import (
    Detail,
    Fact,
    JsonSection,
    Section,
    StyledSection,
    TextSection,
    TracebackSection,
)
from pgq_tui.view_model.figures import (
    format_bytes,
    format_change,
    format_count,
    format_exact,
    format_id,
    format_percent,
    format_rate,
    plural,
)
from pgq_tui.view_model.glyphs import ASCII, UNICODE, Glyphs, IconChoice, pick_glyphs
from pgq_tui.view_model.json_text import JSON, RawJson, compact_json, json_text, pretty_json
from pgq_tui.view_model.palette import PLAIN, Palette, Token
from pgq_tui.view_model.rows import TableColumn, TableRow
from pgq_tui.view_model.safe_text import cell, clean_text, cut, one_line, safe_lines
from pgq_tui.view_model.sparks import bar, bar_text, sparkline
from pgq_tui.view_model.status import StatusLook, icon_text, status_look, status_text
from pgq_tui.view_model.tail_record import LogRecord, RuleRecord, TailOptions, TailRecord, TimeFormat, time_text
from pgq_tui.view_model.times import (
    format_age,
    format_clock,
    format_coarse,
    format_duration,
    format_span,
    format_stamp,
    format_until,
    format_when,
)
from pgq_tui.view_model.traceback_text import traceback_text

__all__ = [
    # Text that nobody may trust
    "clean_text",
    "one_line",
    "cut",
    "cell",
    "safe_lines",
    # Figures
    "format_count",
    "format_exact",
    "format_rate",
    "format_percent",
    "format_change",
    "format_bytes",
    "format_id",
    "plural",
    # Times
    "format_duration",
    "format_span",
    "format_coarse",
    "format_age",
    "format_until",
    "format_clock",
    "format_when",
    "format_stamp",
    # Pictures in a line
    "sparkline",
    "bar",
    "bar_text",
    # States, colours, signs
    "StatusLook",
    "status_look",
    "status_text",
    "icon_text",
    "Token",
    "Palette",
    "PLAIN",
    "Glyphs",
    "IconChoice",
    "UNICODE",
    "ASCII",
    "pick_glyphs",
    # JSON and tracebacks
    "JSON",
    "RawJson",
    "pretty_json",
    "json_text",
    "compact_json",
    "traceback_text",
    # What the widgets show
    "ChartData",
    "ChartSeries",
    "ChartMark",
    "TableColumn",
    "TableRow",
    "Detail",
    "Fact",
    "Section",
    "TextSection",
    "TracebackSection",
    "JsonSection",
    "StyledSection",
    "TailRecord",
    "TailOptions",
    "TimeFormat",
    "LogRecord",
    "RuleRecord",
    "time_text",
    "HeaderView",
    "Counter",
    "ContextClass",
    "TabsView",
    "Tab",
    "StatusView",
    "Link",
    "KeyHint",
    "HelpRow",
    "Choice",
    "Confirmation",
]
