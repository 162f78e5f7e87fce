"""The facts, errors, tracebacks and payload of one row."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from pgq_tui.view_model.detail import Detail, TracebackSection, detail_lines, detail_plain
from pgq_tui.widgets.text_view import TextView


class DetailPane(TextView):
    """Shows a `Detail`; the same detail again is not painted again, another refresh of the row keeps the place."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "fold", "Fold or unfold library frames", id="detail.fold", show=False),
    ]

    def __init__(
        self,
        *,
        empty: str = "nothing chosen",
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(empty=empty, id=id, classes=classes)
        self._detail: Detail | None = None
        self._is_folded = True

    @property
    def detail(self) -> Detail | None:
        """What is shown."""
        return self._detail

    @property
    def copy_text(self) -> str:
        """The whole detail unfolded, for the clipboard."""
        return detail_plain(self._detail) if self._detail else ""

    def on_mount(self) -> None:
        """Say why the pane is empty."""
        super().on_mount()
        self._show(from_top=True)

    def show(self, detail: Detail | None) -> None:
        """Show a row; the place is kept while the title stays the same."""
        if detail == self._detail:
            return
        is_other = detail is None or self._detail is None or detail.title != self._detail.title
        self._detail = detail
        self._show(from_top=is_other)

    def action_fold(self) -> None:
        """Fold or unfold the frames of libraries."""
        self._is_folded = not self._is_folded
        self._show(from_top=False)

    def _show(self, *, from_top: bool) -> None:
        detail = self._detail
        self.set_title(detail.title if detail else "", self._fold_hint())
        self.show_lines(self._lines_of_detail, from_top=from_top)

    def _lines_of_detail(self, width: int) -> list[Text]:
        if self._detail is None:
            return []
        return detail_lines(self._detail, width, self.palette, folded=self._is_folded, glyphs=self.glyphs)

    def _fold_hint(self) -> str:
        sections = self._detail.sections if self._detail else ()
        if not any(isinstance(section, TracebackSection) for section in sections):
            return ""
        return "o unfold" if self._is_folded else "o fold"
