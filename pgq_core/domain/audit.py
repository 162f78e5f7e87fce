"""Which runs of a queue leave a row in `job_runs`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pgq_core.domain.job import JSON
from pgq_core.errors import InvalidJob

DEFAULT_SAMPLE: Final = 0.01


class Audit(StrEnum):
    """What a queue writes down. Only plain successes are ever left out: see docs/schema.md."""

    ALL = "all"
    FAILURES = "failures"
    SAMPLE = "sample"


@dataclass(frozen=True, slots=True)
class AuditRule:
    """`sample`: the share of plain successes that is kept; it counts where `audit` is SAMPLE."""

    audit: Audit = Audit.ALL
    sample: float = DEFAULT_SAMPLE

    @property
    def share(self) -> float | None:
        """None where no sample is taken."""
        return self.sample if self.audit is Audit.SAMPLE else None

    @property
    def kept_share(self) -> float:
        """Of plain successes, whatever the mode."""
        match self.audit:
            case Audit.ALL:
                return 1.0
            case Audit.FAILURES:
                return 0.0
            case Audit.SAMPLE:
                return self.sample

    def document(self) -> dict[str, JSON]:
        """As it is written into operations, without the share where none is taken.

        >>> AuditRule(Audit.SAMPLE, 0.1).document(), AuditRule(Audit.ALL).document()
        ({'audit': 'sample', 'share': 0.1}, {'audit': 'all'})
        """
        return {"audit": self.audit.value} | ({} if self.share is None else {"share": self.share})


def checked_rule(audit: str, share: float | None = None) -> AuditRule:
    """
    >>> checked_rule("failures").audit, checked_rule("sample").sample, checked_rule("sample", 1).sample
    (<Audit.FAILURES: 'failures'>, 0.01, 1.0)
    >>> checked_rule("sample", float("nan"))
    Traceback (most recent call last):
    ...
    pgq_core.errors.InvalidJob: share: it must be above 0 and at most 1
    """
    try:
        kind = Audit(audit)
    except ValueError:
        raise InvalidJob("audit", f"it must be one of {', '.join(Audit)}") from None
    if share is None:
        return AuditRule(kind)
    if kind is not Audit.SAMPLE:
        raise InvalidJob("share", f"it means something with {Audit.SAMPLE} only, not with {kind}")
    if not 0 < share <= 1:
        raise InvalidJob("share", "it must be above 0 and at most 1")
    return AuditRule(kind, float(share))


def kept_runs(audit: Audit, share: float | None) -> str:
    """In words, for a line about a queue.

    >>> kept_runs(Audit.SAMPLE, 0.015), kept_runs(Audit.FAILURES, None), kept_runs(Audit.ALL, None)
    ('failures and 1.5 % of successes', 'failures only', 'all runs')
    """
    match audit:
        case Audit.ALL:
            return "all runs"
        case Audit.FAILURES:
            return "failures only"
        case Audit.SAMPLE:
            return f"failures and {100 * (share or 0.0):.4g} % of successes"
