"""The least a project needs. The queue needs nothing here."""

from __future__ import annotations

import os

from psycopg.conninfo import conninfo_to_dict

SECRET_KEY = os.environ.get("SECRET_KEY", "for this example only")
ALLOWED_HOSTS = ["localhost", "testserver"]
INSTALLED_APPS = ["signup"]
ROOT_URLCONF = "shop.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

_address = conninfo_to_dict(os.environ["DATABASE_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _address.get("dbname", ""),
        "USER": _address.get("user", ""),
        "PASSWORD": _address.get("password", ""),
        "HOST": _address.get("host", ""),
        "PORT": str(_address.get("port", "")),
    }
}
