"""Takes the pictures of the console in docs/, from a console over examples/online_retail.

This is not part of the suite. When `lamina demo` has shown everything, and still runs:

    python -m tests.lamina.browsers.pictures --console http://127.0.0.1:8765
"""

from __future__ import annotations

import argparse
import base64
import tempfile
from pathlib import Path

from tests.lamina.browsers.chromium import Chromium, chromium

DOCS = Path(__file__).resolve().parents[3] / "docs"

WIDTH = 1265

MOST_BYTES = 200_000
"""Bytes of a picture: a clone carries every version of it."""

CUT = "document.querySelectorAll('table.rows tbody tr:nth-child(n + 4)').forEach(row => row.remove())"
"""Leaves the first three rows of a view, so that lineage comes into the picture."""

PICTURES = {
    "console.png": ("/", "document.querySelector('time')", "document.querySelector('footer')"),
    "console-view.png": (
        "/view/bestsellers",
        "document.querySelector('table.bars') && document.querySelector('svg.graph')",
        "document.querySelector('details')",
    ),
    "console-source.png": (
        "/source/invoice_lines",
        "document.querySelector('svg.phases')",
        "[...document.querySelectorAll('h2')].find(heading => heading.innerText === 'Quarantine')",
    ),
}
"""By file: the page, what is there once it is drawn, and the element above which the picture ends."""


def take(page: Chromium, address: str, file: Path) -> None:
    """Writes the picture of a page. Raises if it is too large."""
    path, drawn, below = PICTURES[file.name]
    page.call("Emulation.setScrollbarsHidden", hidden=True)
    _resize(page, 1000)
    page.open(f"{address}{path}")
    page.until(f"document.readyState === 'complete' && !!({drawn})")
    page.value(CUT)
    height = int(page.value(f"{below}.getBoundingClientRect().top + window.scrollY"))
    _resize(page, height)
    picture = base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"])
    if len(picture) > MOST_BYTES:
        raise SystemExit(f"{file.name} has {len(picture):,} bytes, more than {MOST_BYTES:,}")
    file.write_bytes(picture)


def _resize(page: Chromium, height: int) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=height, deviceScaleFactor=1, mobile=False)


def main() -> None:
    """Takes the named pictures, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--console", default="http://127.0.0.1:8765", help="the console's address")
    parser.add_argument("pictures", nargs="*", metavar="PICTURE", help=f"of {', '.join(PICTURES)}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, chromium(Path(profile)) as page:
        for name in arguments.pictures or PICTURES:
            take(page, arguments.console.rstrip("/"), DOCS / name)


if __name__ == "__main__":
    main()
