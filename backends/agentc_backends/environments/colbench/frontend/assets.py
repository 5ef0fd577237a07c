"""What a page may ask for: our own stylesheet, Tailwind's from a file, and grey pictures in the
place of those of the services that ColBench's pages name. Nothing else is answered.
"""

from __future__ import annotations

import re
import struct
import zlib
from functools import lru_cache

from agentc.runtime.browser.render import Answer
from agentc_backends.environments.colbench.frontend.pages import TAILWIND

OWN = "https://pages.invalid/style.css"
"""Where invented pages find their classes; `.invalid` belongs to nobody."""
STYLE = """\
* { margin: 0; padding: 0; box-sizing: border-box }
body { font-family: "DejaVu Sans", sans-serif; font-size: 18px; color: #222222 }
header, footer, section { padding: 24px }
main { display: grid; gap: 16px; padding: 16px }
.blue { background: #2563eb; color: #ffffff }
.green { background: #15803d; color: #ffffff }
.red { background: #b91c1c; color: #ffffff }
.grey { background: #e5e7eb }
.left { text-align: left }
.center { text-align: center }
.right { text-align: right }
.small { font-size: 14px }
.large { font-size: 40px }
.one { grid-template-columns: 1fr }
.two { grid-template-columns: 1fr 1fr }
.three { grid-template-columns: 1fr 1fr 1fr }
"""
_PICTURES = (
    re.compile(r"https?://(?:fastly\.)?picsum\.photos/(?:id/\d+/)?(\d{1,4})/(\d{1,4})(?:[/?.].*)?"),
    re.compile(r"https?://source\.unsplash\.com/(?:random/)?(\d{1,4})x(\d{1,4})(?:[/?].*)?"),
    re.compile(r"https?://via\.placeholder\.com/(\d{1,4})(?:x(\d{1,4}))?(?:[/?.].*)?"),
)
_LARGEST = 4096
_GREY = 0xB0


def answers(tailwind: bytes | None) -> Answer:
    """The table for pages; without `tailwind` its address is refused like any other."""

    def answer(url: str) -> tuple[str, bytes] | None:
        if url == OWN:
            return "text/css", STYLE.encode()
        if tailwind is not None and TAILWIND in url:
            return "text/css", tailwind
        for pattern in _PICTURES:
            found = pattern.fullmatch(url)
            if found is not None:
                width, height = int(found[1]), int(found[2] or found[1])
                if 0 < width <= _LARGEST and 0 < height <= _LARGEST:
                    return "image/png", grey_picture(width, height)
        return None

    return answer


@lru_cache(maxsize=256)
def grey_picture(width: int, height: int) -> bytes:
    """A PNG of one grey."""
    rows = (b"\0" + bytes([_GREY]) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
