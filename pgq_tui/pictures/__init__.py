"""A shop that stands still: the same data every time, for the pictures in the documentation and for tests."""

from __future__ import annotations

from pgq_tui.pictures.shop import Shop, busy_shop, empty_shop
from pgq_tui.pictures.shop_backend import ShopBackend
from pgq_tui.pictures.shop_clock import NOW

__all__ = ["NOW", "Shop", "ShopBackend", "busy_shop", "empty_shop"]
