"""The row and its job are committed together. What the queue adds ends in `# pgq`."""

from __future__ import annotations

import os  # pgq

from django.core.validators import validate_email
from django.db import transaction
from django.http import HttpRequest, JsonResponse

from pgq_core import JobQueue  # pgq
from signup.models import Customer

queue = JobQueue(os.environ["DATABASE_URL"])  # pgq


@transaction.atomic
def sign_up(request: HttpRequest) -> JsonResponse:
    customer = Customer.objects.create(email=request.POST["email"])
    queue.enqueue("welcome", {"customer": customer.pk}, conn=transaction.get_connection())  # pgq
    validate_email(customer.email)  # raises, and takes the row and its job back
    return JsonResponse({"id": customer.pk}, status=201)
