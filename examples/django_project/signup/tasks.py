"""What is done for the project, by its workers. What the queue adds ends in `# pgq`.

pgq-core worker --app signup.tasks
"""

from __future__ import annotations

import os  # pgq

import django  # pgq
from django.db import close_old_connections  # pgq

from pgq_core import handler  # pgq

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")  # pgq
django.setup()  # pgq

from signup.models import Customer  # noqa: E402 - models can be imported now


@handler("welcome")  # pgq
def welcome(data: dict[str, int]) -> None:
    close_old_connections()  # pgq
    Customer.objects.filter(pk=data["customer"]).update(welcomed=True)
