"""Every statement the program runs: one `Queries` object, one method per `.sql` file, method name = file name."""

from __future__ import annotations

from pgq_core.queries.claims import ClaimQueries
from pgq_core.queries.pools import PoolQueries
from pgq_core.queries.schema import SchemaQueries
from pgq_core.queries.statement import Statement


class Queries(ClaimQueries, PoolQueries, SchemaQueries):
    """The one door to SQL. Grouped by what the statements are about; the groups share nothing but the schema."""


__all__ = ["Queries", "Statement"]
