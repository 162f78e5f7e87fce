from __future__ import annotations

from django.urls import path
from signup.views import sign_up

urlpatterns = [path("customers", sign_up)]
