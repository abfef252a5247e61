"""Draws the pictures of docs/pictures: what `seglake verify --html` shows of files that are damaged on purpose.

    .venv/bin/python scripts/pictures.py

It takes a Chromium. The files, and so the pictures, are the same each time, but for the fonts of the machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Final

import seglake

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "pictures"
_TIMEOUT_S: Final = 120
_WIDTH: Final = 960
_TICKS: Final = 0x1EF_8A1C_0000_0000
_NOTES: Final = ("leave at the door", "call first", "gift: yes")


def orders(path: Path, count: int) -> list[int]:
    """Write a segment of made-up orders, and return where each begins."""
    with seglake.create(path) as segment:
        for number in range(count):
            ticks = _TICKS + 30_000_000 * number
            key = uuid.UUID(int=(ticks >> 12) << 80 | 6 << 76 | (ticks & 0xFFF) << 64 | 2 << 62 | number)
            value = {"order": 100_000 + number, "total": number * 7 % 900, "note": _NOTES[number % 3]}
            segment.write(uuid=key, type=("order.created", "order.paid")[number % 2], value=json.dumps(value).encode())
    return [record.position for record in seglake.open(path)]


def flipped_bit(path: Path) -> None:
    """A segment in which one bit of a value is flipped."""
    starts = orders(path, 4000)
    content = bytearray(path.read_bytes())
    content[content.index(b'"note"', starts[1500]) + 1] ^= 0x04
    path.write_bytes(content)


def repeated_block(path: Path) -> None:
    """A segment in which 4 KiB are twice, one after the other."""
    orders(path, 4000)
    content = path.read_bytes()
    path.write_bytes(content[: 4096 * 41] + content[4096 * 40 :])


PICTURES: Final = {"flipped-bit": (flipped_bit, 980), "repeated-block": (repeated_block, 700)}
"""By name: what damages the file, and the height of the picture."""


def main() -> int:
    """Draw all pictures. Return 1 if there is no Chromium."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        print("no Chromium is on the path: install one, such as Debian's package chromium", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    for name, (damage, height) in PICTURES.items():
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            damage(Path(folder, "orders.active"))
            command = [sys.executable, "-m", "seglake", "verify", "--html", "report.html", "orders.active"]
            subprocess.run(command, check=False, cwd=folder, capture_output=True, timeout=_TIMEOUT_S)
            flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
            size = (f"--user-data-dir={folder}/chromium", f"--window-size={_WIDTH},{height}")
            shown = (f"--screenshot={FOLDER / name}.png", Path(folder, "report.html").as_uri())
            subprocess.run([browser, *flags, *size, *shown], check=True, capture_output=True, timeout=_TIMEOUT_S)
        print(f"{FOLDER / name}.png: {(FOLDER / f'{name}.png').stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
