"""Which runs of a queue leave a row: the choices, a share as it is typed, and the question before less is kept."""

from __future__ import annotations

from collections.abc import Sequence

from pgq_core.domain.audit import Audit, AuditRule, checked_rule, kept_runs
from pgq_core.domain.snapshot import QueueView
from pgq_core.errors import InvalidJob
from pgq_tui.view_model.chrome import Choice, Confirmation
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import one_line

SHARE_WORDS = "How many of its plain successes leave a row in job_runs? A larger share keeps what a smaller one kept."
_LONGEST_NAME = 40


def rule_of(queue: QueueView) -> AuditRule:
    """What the queue writes down now."""
    return checked_rule(queue.audit, queue.audit_sample)


def audit_words(now: AuditRule) -> str:
    return (
        f"Now it keeps {kept_runs(now.audit, now.share)}. Which runs are to leave a row in job_runs?\n"
        "A plain success is one at the first run, without a result. All else always leaves its row; "
        "statistics count every run."
    )


def audit_choices(now: AuditRule) -> tuple[Choice, ...]:
    """What is so now comes first: enter takes it, and nothing changes.

    >>> [choice.label for choice in audit_choices(AuditRule(Audit.FAILURES))]
    ['failures', 'all', 'sample']
    """
    choices = (
        Choice(Audit.ALL, "a", "all", "every run leaves a row"),
        Choice(Audit.FAILURES, "f", "failures", "no plain success leaves a row"),
        Choice(Audit.SAMPLE, "s", "sample", f"{share_text(now)} of plain successes leave a row; the share is asked"),
    )
    return tuple(sorted(choices, key=lambda choice: choice.id != now.audit))


def share_text(rule: AuditRule) -> str:
    """
    >>> share_text(AuditRule(Audit.SAMPLE, 0.07)), share_text(AuditRule())
    ('7 %', '1 %')
    """
    return f"{100 * rule.sample:.4g} %"


def sample_rule(typed: str) -> AuditRule | None:
    """The sample of this share; None for what is none.

    >>> [sample_rule(words).sample for words in ("5 %", "0.05", "100%")]
    [0.05, 0.05, 1.0]
    >>> [sample_rule(words) for words in ("5", "0 %", "101 %", "nan", "few", "")]
    [None, None, None, None, None, None]
    """
    words = typed.strip()
    number = words.removesuffix("%")
    try:
        return checked_rule(Audit.SAMPLE, float(number) / (1 if number == words else 100))
    except (ValueError, InvalidJob):
        return None


def share_trouble(typed: str) -> str | None:
    """What is wrong with a share."""
    return None if sample_rule(typed) else "above 0 % and up to 100 %, written as 1 % or 0.01"


def typed_rule(words: Sequence[str]) -> AuditRule | None:
    """What follows the queue on the command line.

    >>> typed_rule(["sample", "5", "%"]), typed_rule(["all", "5%"])
    (AuditRule(audit=<Audit.SAMPLE: 'sample'>, sample=0.05), None)
    """
    match list(words):
        case ["all" | "failures" | "sample" as word]:
            return checked_rule(word)
        case ["sample", *share]:
            return sample_rule(" ".join(share))
    return None


def fewer_kept(name: str, before: AuditRule, after: AuditRule) -> Confirmation | None:
    """The question before a queue keeps less than now; None where it keeps as much, or more.

    >>> fewer_kept("mail", AuditRule(Audit.FAILURES), AuditRule(Audit.SAMPLE, 0.1)) is None
    True
    """
    if after.kept_share >= before.kept_share:
        return None
    which = "no plain success" if after.audit is Audit.FAILURES else f"only {share_text(after)} of the plain successes"
    effect = f"From now on {which} of {one_line(name, _LONGEST_NAME)} will leave a row in job_runs."
    note = (
        "A job without a row is unknown once it has ended: no time, no worker, nothing to find by its id. "
        "Failures, results and successes after a retry or a replay are kept, and so is what is written down already."
    )
    return Confirmation("Keep fewer runs", effect, "keep fewer", note=note, token=Token.RETRY)
