"""Product pictures: drawn from their name, made smaller, stored under a path that follows from what was asked for."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from pathlib import Path

import platformdirs

try:
    from PIL import Image
except ImportError:  # the `demo` extra is not installed: a plainer picture by the standard library
    HAS_PILLOW = False
else:
    HAS_PILLOW = True

SOURCE_SIZE = 480


def picture_directory() -> Path:
    chosen = os.environ.get("SHOP_PICTURES")
    return Path(chosen) if chosen else platformdirs.user_cache_path("pgq-tui", appauthor=False) / "shop"


def picture_path(name: str, width: int) -> Path:
    """The same name and width, the same path: a second run finds the picture and changes nothing."""
    digest = hashlib.sha256(f"{name}\x1f{width}".encode("utf-8", "replace")).hexdigest()[:20]
    return picture_directory() / f"{digest}-{width}.png"


def resize_picture(name: str, width: int) -> Path:
    """Stored whole or not at all, whoever is killed when."""
    path = picture_path(name, width)
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    if HAS_PILLOW:
        _with_pillow(name, width, unfinished)
    else:
        unfinished.write_bytes(_plain_png(name, width))
    unfinished.replace(path)
    return path


def _with_pillow(name: str, width: int, path: Path) -> None:
    red, green, blue = _colour(name)
    grey = Image.radial_gradient("L").resize((SOURCE_SIZE, SOURCE_SIZE))
    source = Image.merge(
        "RGB", [grey.point(lambda value, share=share: value * share // 255) for share in (red, green, blue)]
    )
    source.resize((width, width), Image.Resampling.LANCZOS).save(path, format="PNG")


def _plain_png(name: str, width: int) -> bytes:
    """A slanted gradient, sampled from a `SOURCE_SIZE` square."""
    colour = _colour(name)
    step = SOURCE_SIZE / width
    rows = bytearray()
    for y in range(width):
        rows.append(0)
        for x in range(width):
            light = int((x + y) * step * 255 / (2 * SOURCE_SIZE))
            rows += bytes(light * share // 255 for share in colour)
    header = struct.pack(">IIBBBBB", width, width, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows))), (b"IEND", b""))
    )


def _colour(name: str) -> tuple[int, int, int]:
    red, green, blue = hashlib.sha256(name.encode("utf-8", "replace")).digest()[:3]
    return 64 + red * 3 // 4, 64 + green * 3 // 4, 64 + blue * 3 // 4
