"""The effect is a file, or an object in a store: its name and content follow from the payload, whoever runs it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pgq_core import Job, handler


@handler("export")
def export(data: dict[str, Any], job: Job) -> dict[str, str]:
    target = Path(os.environ["EXPORTS"]) / f"{int(data['customer'])}-{int(data['month'])}.csv"
    # A name for each run: a worker that was taken for dead may still be writing.
    part = target.with_name(f".{target.name}.{job.id}-{job.claim_token}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write("item,amount\n")
        file.writelines(f"{item},{amount}\n" for item, amount in data["lines"])
        file.flush()
        os.fsync(file.fileno())
    part.replace(target)  # whole or not at all
    for leftover in target.parent.glob(f".{target.name}.*.part"):
        leftover.unlink(missing_ok=True)
    return {"path": str(target)}
