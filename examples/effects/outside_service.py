"""The effect is somebody else's: the job's key goes along, and the service does the work once per key."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from pgq_core import Job, handler


@handler("charge", max_attempts=8, timeout=30)
def charge(data: dict[str, Any], job: Job) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - the address is ours
        os.environ["PAYMENTS_URL"],
        data=json.dumps({"card": data["card"], "amount": data["amount"]}).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": job.key},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - the same
        receipt: dict[str, Any] = json.load(answer)
    return receipt
