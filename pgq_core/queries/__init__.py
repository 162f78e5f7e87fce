"""The statements of the queue: one `Queries` object, one method per file of `sql/queries`, method name = file name.

What only migrations, partitions, the embedded server, the benchmark or tests run lies in folders of its own beside it.
"""

from __future__ import annotations

from pgq_core.queries.claims import ClaimQueries
from pgq_core.queries.clocks import ClockQueries
from pgq_core.queries.enqueues import EnqueueQueries
from pgq_core.queries.lists import ListQueries
from pgq_core.queries.metrics import MetricQueries
from pgq_core.queries.pools import PoolQueries
from pgq_core.queries.reads import ReadQueries
from pgq_core.queries.schema import SchemaQueries
from pgq_core.queries.statement import Statement
from pgq_core.queries.tokens import TokenQueries
from pgq_core.queries.upkeep import UpkeepQueries
from pgq_core.queries.verbs import VerbQueries


class Queries(
    ClaimQueries,
    ClockQueries,
    EnqueueQueries,
    ListQueries,
    ReadQueries,
    VerbQueries,
    PoolQueries,
    UpkeepQueries,
    SchemaQueries,
    TokenQueries,
    MetricQueries,
):
    """The one door to SQL. Grouped by what the statements are about; the groups share nothing but the schema."""


__all__ = ["Queries", "Statement"]
