"""A worker as the command line starts it: settings from the environment, applications from the arguments."""

from __future__ import annotations

import sys

from pgq_core.maintenance import Maintenance, run_maintenance
from pgq_core.settings import load_settings
from pgq_core.worker import WorkerOptions, run_worker


def main() -> int:
    arguments = sys.argv[1:]
    settings = load_settings()
    if "--maintain" in arguments:
        return run_maintenance(settings)
    services = [] if "--no-maintenance" in arguments else [Maintenance(settings)]
    apps = tuple(argument for argument in arguments if not argument.startswith("--"))
    return run_worker(WorkerOptions(settings, apps, burst="--burst" in arguments), services)


if __name__ == "__main__":
    sys.exit(main())
