"""`python -m pgq_core.cli` is `pgq-core`."""

from __future__ import annotations

from pgq_core.cli.root import main

if __name__ == "__main__":
    main()
