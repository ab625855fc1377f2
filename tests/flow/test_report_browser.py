"""The report in headless Chromium: no console message, no request, nothing cut off on a screen or a phone.

Screenshots go to DPMERF_SCREENSHOTS (a folder) when it is set, otherwise to a temporary folder.
"""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import mixed_rows
from dpmerf.evaluate import classifiers
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.report import make_report
from dpmerf.train import train
from fixed_noise import FixedNoise

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH"),
]
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--enable-logging=stderr"),
]
NOWHERE = "--host-resolver-rules=MAP * ~NOTFOUND"  # whatever is asked for, nothing leaves this machine
BROWSER_ITSELF = re.compile(r"^https?://([\w.-]+\.)?(google|googleapis|gstatic)\.com(:\d+)?/")
PROBE = """<!DOCTYPE html><html><body style="margin:0"><iframe id="f" style="border:0;width:WIDTHpx;height:HEIGHTpx"
srcdoc="PAGE"></iframe><script>
document.getElementById("f").onload = e => {
  const page = e.target.contentDocument, root = page.documentElement;
  const wide = [...page.querySelectorAll("section, figure, svg, .tile, h1, h2, h3")].filter(
    x => x.getBoundingClientRect().right > root.clientWidth + 1).map(x => x.tagName + "." + x.className);
  const drawn = [...page.querySelectorAll("svg")].filter(x => x.getBoundingClientRect().height > 20).length;
  document.title = JSON.stringify({width: root.clientWidth, scroll: root.scrollWidth, wide, drawn,
    height: root.scrollHeight, sections: page.querySelectorAll("section").length});
};</script></body></html>"""


@pytest.fixture(scope="module")
def page(mixed_schema, tmp_path_factory) -> Path:
    model = train(
        measure(mixed_rows(1500), make_plan(mixed_schema, 1.0, 1e-5, rows=1500), noise=FixedNoise(1)), steps=40
    )
    few = {name: classifiers.table_classifiers()[name] for name in ("Logistic regression", "XGBoost")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpmerf.evaluate.compare.table_classifiers", lambda: few)
        report = make_report(model.release, model, real=mixed_rows(1500, seed=2), train=mixed_rows(1500))
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.write(path)
    return path


def browse(url: Path, tmp_path: Path, *flags: str) -> tuple[str, str, set[str]]:
    """What Chromium prints, what it logs, and every address that it asked for."""
    log = tmp_path / "net.json"
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            *FLAGS,
            NOWHERE,
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--log-net-log={log}",
            *flags,
            url.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    asked = set(re.findall(r'"url":"([^"]*)"', log.read_text(encoding="utf-8", errors="replace")))
    page_asked = {a for a in asked if a.startswith("http") and not BROWSER_ITSELF.match(a)}
    return done.stdout, done.stderr, page_asked


def console(log: str) -> list[str]:
    return [line for line in log.splitlines() if ":CONSOLE" in line]


def framed(page: Path, width: int, tmp_path: Path, height: int = 900) -> Path:
    """The page inside a frame of a given width: narrower than Chromium's own windows can be."""
    probe = tmp_path / f"probe{width}.html"
    content = html.escape(page.read_text(encoding="utf-8"), quote=True)
    text = PROBE.replace("WIDTH", str(width)).replace("HEIGHT", str(height)).replace("PAGE", content)
    probe.write_text(text, encoding="utf-8")
    return probe


def test_the_check_itself_sees_console_errors_and_requests(tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='http://example.org/x.png'><script>console.error('planted')</script>")
    _, log, asked = browse(bad, tmp_path, "--dump-dom")
    assert "planted" in "".join(console(log))
    assert asked == {"http://example.org/x.png"}


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_opens_quietly_and_fits(page, width, tmp_path):
    out, log, asked = browse(framed(page, width, tmp_path), tmp_path, "--window-size=1400,1000", "--dump-dom")
    assert console(log) == [] and asked == set()
    title = re.search(r"<title>(.*?)</title>", out, re.S)
    assert title is not None
    seen = json.loads(html.unescape(title[1]))
    assert seen["width"] == width and seen["scroll"] <= width, seen
    assert seen["wide"] == [] and seen["sections"] == 8
    assert seen["drawn"] == page.read_text(encoding="utf-8").count("<svg")

    folder = Path(os.environ.get("DPMERF_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    shot = folder / f"report-{width}.png"
    tall = framed(page, width, tmp_path, seen["height"])
    size = f"--window-size={max(width, 500)},{seen['height']}"
    browse(tall, tmp_path, size, f"--screenshot={shot}")
    assert shot.stat().st_size > 50_000


def test_the_page_alone_makes_no_request_either(page, tmp_path):
    _, log, asked = browse(page, tmp_path, "--dump-dom")
    assert console(log) == [] and asked == set()
