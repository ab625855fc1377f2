"""From a CSV to downloaded rows and a report on the page, in a real browser, by keyboard, with the network off.

Screenshots go to DPMERF_SCREENSHOTS (a folder) when it is set, otherwise to a temporary folder.
"""

from __future__ import annotations

import csv
import datetime as dt
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH"),
]
OFF = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"  # the network is off: only this machine answers
SECRET = "Qwertzuiop"  # a ward that nobody declares: it stands in rows only
FIVE_MINUTES = 300


@dataclass
class Walk:
    """The page in a browser, everything it asked for and said, and the steps that were taken."""

    page: Any
    address: str
    pictures: Path
    asked: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    steps: list[tuple[str, float]] = field(default_factory=list)
    start: float = field(default_factory=time.monotonic)

    def step(self, words: str) -> None:
        self.steps.append((words, time.monotonic() - self.start))
        self.bodies.append(self.page.content())
        self.page.screenshot(path=self.pictures / f"{len(self.steps):02}-{words}.png", full_page=True)
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{words}: {wide} pixels are cut off"

    def reach(self, place: str) -> None:
        """By Tab alone, until the focus is there; it must be visible."""
        for _ in range(120):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()") == place:
                outline = self.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"the focus on {place} cannot be seen"
                return
        raise AssertionError(f"{place} cannot be reached by the keyboard")

    def write(self, place: str, text: str) -> None:
        self.reach(place)
        if self.page.evaluate("document.activeElement.tagName") == "SELECT":
            self._choose(text)
            return
        self.page.keyboard.press("Control+A")
        for number, line in enumerate(text.split("\n")):
            if number:
                self.page.keyboard.press("Enter")
            self.page.keyboard.type(line)

    def _choose(self, text: str) -> None:
        """From the top of the list downwards: what is typed into one is forgotten after a second on a busy machine."""
        self.page.keyboard.press("Home")
        for _ in range(30):
            chosen = self.page.evaluate("document.activeElement.selectedOptions?.[0].textContent")
            if str(chosen).startswith(text):
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"{text} cannot be chosen by the keyboard")

    def press(self, place: str, key: str = "Enter") -> None:
        self.reach(place)
        self.page.keyboard.press(key)

    def summary(self, words: str) -> None:
        self.page.wait_for_function(
            "words => document.getElementById('summary').textContent.startsWith(words)", arg=words, timeout=20_000
        )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, draw = tmp_path_factory.mktemp("app"), random.Random(1)
    with open(folder / "visits.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["visit_id", "age", "sex", "admitted", "charges", "ill", "seen", "left"])
        for i in range(3_000):
            sex = SECRET if i % 100 == 0 else draw.choice(["female", "male"])
            day = f"2020-0{draw.randint(1, 9)}-{draw.randint(10, 28)}"
            left = dt.date.fromisoformat(day) + dt.timedelta(days=draw.randint(0, 20))
            clock, ill = f"{draw.randint(6, 21):02}:{draw.randint(0, 59):02}", draw.random() < 0.3
            rows.writerow([f"v{i}", draw.randint(0, 99), sex, day, f"{draw.random() * 1000:.2f}", ill, clock, left])
    return folder


@pytest.fixture(scope="module")
def address(place: Path) -> Iterator[str]:
    """`dpmerf app` itself, in a process of its own."""
    command = [sys.executable, "-m", "dpmerf.cli", "app", "visits.csv", "-o", "made", "--no-browser"]
    server = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/\S+", server.stdout.readline())
        assert found
        yield found.group()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    assert not (place / "made" / ".sent").exists()


def opened(address: str, tmp_path: Path, width: int, scheme: str) -> Iterator[Walk]:
    pictures = Path(os.environ.get("DPMERF_SCREENSHOTS") or tmp_path) / f"app-{width}-{scheme}"
    pictures.mkdir(parents=True, exist_ok=True)
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", OFF])
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        walk = Walk(context.new_page(), address, pictures)
        walk.page.on("request", lambda request: walk.asked.append(request.url))
        walk.page.on("console", lambda message: walk.said.append(message.text))
        walk.page.on("pageerror", lambda error: walk.said.append(str(error)))
        yield walk
        assert not walk.said
        assert all(url.startswith((address, "data:")) for url in walk.asked), walk.asked
        assert not [body for body in walk.bodies if SECRET in body]
        browser.close()


@pytest.fixture
def wide(address: str, tmp_path: Path) -> Iterator[Walk]:
    yield from opened(address, tmp_path, 1280, "light")


@pytest.fixture
def phone(address: str, tmp_path: Path) -> Iterator[Walk]:
    yield from opened(address, tmp_path, 390, "dark")


def test_from_a_csv_to_rows_and_report_by_keyboard_alone(wide: Walk, place: Path) -> None:
    page = wide.page
    page.goto(wide.address)
    wide.step("table")
    wide.press("Go on with its columns")
    page.wait_for_url("**/columns")
    wide.write("c1.min", "0")
    wide.write("c1.max", "-5")  # an error, on the way
    wide.write("c2.kind", "cat")
    wide.write("c2.values", "female\nmale")
    wide.write("c2.other", "other")
    wide.write("c3.kind", "date")
    wide.write("c3.first", "2020-01-01")
    wide.write("c3.last", "2020-12-31")
    wide.write("c4.min", "0")
    wide.write("c4.max", "1000")
    wide.write("c5.kind", "flag")
    wide.write("c6.kind", "time –")
    assert page.locator("[id='c6.first']").get_attribute("placeholder") == "00:00:00"
    wide.write("c6.first", "06:00")
    wide.write("c6.last", "22:00")
    wide.write("c6.step", "60")
    wide.write("c7.kind", "date")
    wide.write("c7.first", "2020-01-01")
    wide.write("c7.last", "2021-01-31")
    wide.write("rules", "if age < 14 then ill = false\nlearn left - admitted from 0d to 30d")
    wide.summary("1 to do: age")
    assert "min below max" in page.locator("#problems-1").inner_text()
    wide.step("an error is met")
    wide.write("label", "ill")
    wide.write("c1.max", "110")
    wide.summary("Everything is declared.")
    wide.step("and mended")
    wide.press("Go on")
    page.wait_for_url("**/protect")
    wide.step("protect")
    wide.press("Go on")
    page.wait_for_url("**/plan")
    before = page.locator(".verdict").inner_text()
    wide.reach("slide")
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("words => document.querySelector('.verdict').innerText !== words", arg=before)
    assert float(page.locator("#epsilon").input_value()) == 2
    wide.write("delta", "1e-5")
    wide.step("plan")
    assert page.locator("#price tbody tr").count() == 4  # yours, half, twice, and the other unit
    wide.press("Go on to the release")
    page.wait_for_url("**/release")
    wide.press("Show the command and the schema for this")
    assert "--epsilon 2" in page.locator("#commands").inner_text()
    assert "[columns.age]" in page.locator("#schema").inner_text()
    wide.step("release")
    wide.press("Spend ε = 2 and release")
    page.wait_for_url("**/result", timeout=FIVE_MINUTES * 1000)
    page.wait_for_load_state("networkidle")
    wide.step("result")
    for what in ("synthetic", "report", "dossier", "card"):
        with page.expect_download() as found:
            page.locator(f"a[href$='/file/{what}']").press("Enter")
        found.value.save_as(place / "got" / found.value.suggested_filename)
    wide.step("downloaded")
    with open(place / "got" / "synthetic.csv", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    assert len(rows) == 3_000 and {row["sex"] for row in rows} <= {"female", "male", "other"}
    assert not [row for row in rows if int(row["age"]) < 14 and row["ill"].lower() == "true"]
    assert not [row for row in rows if row["left"] < row["admitted"]]
    assert all("06:00:00" <= row["seen"] <= "22:00:00" and row["seen"].endswith(":00") for row in rows)
    assert "Synthetic data report" in (place / "got" / "report.html").read_text()
    assert "Signatures" in (place / "got" / "dossier.html").read_text()
    seconds = wide.steps[-1][1]
    print("\n".join(f"{at:6.1f} s  {words}" for words, at in wide.steps))
    assert seconds < FIVE_MINUTES


def test_what_nobody_knows_is_bought(phone: Walk, place: Path) -> None:
    page = phone.page
    page.goto(phone.address)
    page.set_input_files("#file", shutil.copy(place / "visits.csv", place / "unknown.csv"))
    page.click("text=Open the table")
    page.wait_for_url("**/columns")
    page.click("#to-buy")
    for number in (2, 3, 5, 6, 7):  # only age and charges are asked about
        page.uncheck(f"#buy-{number}")
    page.fill("#epsilon", "1")
    page.fill("#limit", "2")
    phone.step("buy")
    page.click("button.main")
    page.wait_for_url("**/columns", timeout=FIVE_MINUTES * 1000)
    phone.step("bought")
    assert "Bought with noise" in page.locator("#column-1").inner_text()
    assert 60 <= float(page.locator("[id='c1.max']").input_value()) <= 300
    assert "dpmerf discover" in (page.locator("#commands").text_content() or "")


def test_on_a_phone_in_the_dark_a_file_is_sent_and_the_budget_holds(phone: Walk, place: Path) -> None:
    page = phone.page
    page.goto(phone.address)
    sent = shutil.copy(place / "visits.csv", place / "register.csv")  # another name: a ledger of its own
    page.click("#written summary")
    page.fill("[id='reading.missing']", "NA | unknown")
    phone.step("how it is written")
    page.set_input_files("#file", sent)
    page.click("text=Open the table")
    page.wait_for_url("**/columns")
    book = place / "codebook.csv"
    book.write_text(
        "name,type,label,values,min,max\nvisit_id,id,,,,\nage,integer,Age,,0,110\n"
        'sex,categorical,Sex,"female | male | other",,\nadmitted,date,,,2020-01-01,2020-12-31\n'
        "charges,number,,,0,1000\nill,boolean,,,,\nseen,time,,,,\nleft,date,,,2020-01-01,2021-01-31\n"
    )
    page.set_input_files("#described", book)
    page.click("text=Take over")
    phone.summary("Everything is declared.")
    phone.step("columns")
    page.locator("button.main").last.click()
    page.wait_for_url("**/protect")
    page.check("input[value=person]")
    phone.step("protect")
    page.click("button.main")
    page.wait_for_url("**/plan")
    page.fill("#rows", "3000")
    page.click("button.main")
    page.wait_for_url("**/release")
    page.fill("#limit", "0.5")
    page.click("button.main")
    page.wait_for_selector("#job-problem:not([hidden]), .problem[role=alert]:not([hidden])", timeout=60_000)
    phone.step("refused")
    assert "this would overspend" in page.content()
    page.wait_for_selector("button.main")  # another try is at hand, after a smaller plan
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
