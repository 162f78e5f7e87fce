"""The filter of the list, as a form has it: empty fields count as not given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from urllib.parse import urlencode

from pydantic import ValidationError

from pgq_core.api.bodies import field_errors
from pgq_core.api.dead_models import DeadJobFilter
from pgq_core.api.problems import unprocessable
from pgq_core.domain.filters import DeadLetterFilters, Resolution
from pgq_core.domain.job import DeathReason

REASONS = tuple(DeathReason)
RESOLUTIONS = tuple(Resolution)


@dataclass(frozen=True, slots=True)
class ListFilter:
    text: str = ""
    queue: str = ""
    type: str = ""
    reason: str = ""
    fingerprint: str = ""
    resolution: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ListFilter:
        return cls(**{name: given.get(name, "").strip() for name in cls.__dataclass_fields__})

    @property
    def filters(self) -> DeadLetterFilters:
        """Raises a 422 that names the field."""
        try:
            checked = DeadJobFilter.model_validate(
                {name: value for name, value in asdict(self).items() if value and name != "resolution"}
            )
            return checked.filters_of(Resolution(self.resolution or Resolution.UNRESOLVED))
        except ValidationError as error:
            raise unprocessable(*field_errors(error.errors(include_url=False, include_input=False))) from None
        except ValueError:
            raise unprocessable(*field_errors([{"loc": ("resolution",), "type": "", "msg": "is unknown"}])) from None

    @property
    def is_empty(self) -> bool:
        return self == ListFilter()

    @property
    def is_about_unresolved(self) -> bool:
        return self.resolution in ("", Resolution.UNRESOLVED)

    @property
    def fields(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value}

    def address(self, **more: object) -> str:
        """The list with this filter; `more` adds to the query or replaces parts of it."""
        query = {**self.fields, **{name: str(value) for name, value in more.items() if value not in ("", None)}}
        return "/ui/dead" + (f"?{urlencode(query)}" if query else "")
