"""The page's server: who is refused, what is never shown, and how what is typed becomes a schema."""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from dpmerf.app import forms
from dpmerf.app.server import build
from dpmerf.app.session import Session
from dpmerf.schema import Schema

TOKEN, PORT = "a-token-of-the-test", 8123
CELL = "Zyxwvut"  # stands in rows only: wherever it is seen, a cell was shown
HEADER = b"visit_id,age,ward,admitted\n"


def client(session: Session, host: str = f"127.0.0.1:{PORT}") -> TestClient:
    return TestClient(
        build(session, TOKEN, PORT), base_url=f"http://{host}", follow_redirects=False, raise_server_exceptions=False
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    path.write_bytes(HEADER + b"".join(f"{i},{i % 90},{CELL},2020-01-05\n".encode() for i in range(300)))
    return path


def test_without_the_token_nothing_is_served(tmp_path: Path) -> None:
    page = client(Session(tmp_path))
    for path in ("/", "/columns", "/static/app.css", f"/{TOKEN}x/", "/wrong/columns", f"//{TOKEN}/", "/file/report"):
        answer = page.get(path)
        assert answer.status_code == 403 and "refused" in answer.text, path
    assert page.get(f"/{TOKEN}/").status_code == 200


def test_another_address_or_another_site_is_refused(tmp_path: Path) -> None:
    session = Session(tmp_path)
    for host in ("evil.example", f"evil.example:{PORT}", "127.0.0.1:1", f"192.168.0.7:{PORT}", "0.0.0.0"):
        assert client(session, host).get(f"/{TOKEN}/").status_code == 403, host
    page = client(session)
    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        assert page.post(f"/{TOKEN}/open", data={"path": "/etc/passwd"}, headers=headers).status_code == 403, headers
    outside = TestClient(build(session, TOKEN, PORT), base_url=f"http://127.0.0.1:{PORT}", client=("192.168.0.9", 5000))
    assert outside.get(f"/{TOKEN}/").status_code == 403


def test_every_answer_forbids_requests_elsewhere(tmp_path: Path) -> None:
    for path in (f"/{TOKEN}/", f"/{TOKEN}/static/app.js", "/"):
        headers = client(Session(tmp_path)).get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"] and headers["cache-control"] == "no-store"


def _sent(page: TestClient, name: str, data: bytes, far: bool = True) -> str:
    """Send a file and walk on as far as the pages allow; everything that came back."""
    answer = page.post(f"/{TOKEN}/open", files={"file": (name, data)})
    said = answer.text
    assert answer.status_code in (303, 422), said
    if answer.status_code == 303:
        said += (
            page.get(f"/{TOKEN}/columns").text + page.get(f"/{TOKEN}/").text + page.get(f"/{TOKEN}/schema.toml").text
        )
        said += page.post(f"/{TOKEN}/columns/check", data={"c0.kind": "id", "c1.kind": "integer"}).text
        said += page.post(f"/{TOKEN}/columns", data={"c2.kind": "category", "c2.values": "a"}).text
        if not far:
            return said
        everything = {
            **{"c0.kind": "id", "c1.kind": "integer", "c1.min": "0", "c1.max": "99"},
            **{"c2.kind": "category", "c2.values": "a\nb", "c2.other": "b", "c3.kind": "leave out"},
        }
        said += page.post(f"/{TOKEN}/columns", data=everything).text
        for place in ("protect", "plan", "release", "result"):
            answer = page.get(f"/{TOKEN}/{place}")
            assert answer.status_code in (200, 303), answer.text
            said += answer.text
    return said


def _files(table: Path) -> dict[str, bytes]:
    rows = pa.table({"visit_id": range(50), "age": range(50), "ward": [CELL] * 50, "admitted": [CELL] * 50})
    parquet, arrow = io.BytesIO(), io.BytesIO()
    pq.write_table(rows, parquet, compression="none", write_statistics=True)
    feather.write_feather(rows, arrow, compression="uncompressed")
    csv = table.read_bytes()
    files = {"v.csv": csv, "v.csv.gz": gzip.compress(csv), "v.parquet": parquet.getvalue(), "v.arrow": arrow.getvalue()}
    return {**files, "v.txt": csv, "v.xlsx": csv, "v": csv, ".csv": csv, "../../v.csv": csv}


def test_a_fuzzed_upload_never_shows_a_cell(tmp_path: Path, table: Path) -> None:
    page, draw = client(Session(tmp_path / "out")), random.Random(20)
    opened = 0
    for name, data in _files(table).items():
        keep = len(HEADER) if data.startswith(HEADER) else 4
        for turn in range(12):
            broken = bytearray(data)
            for _ in range(turn):
                place = draw.randrange(keep, len(broken))
                match draw.randrange(4):
                    case 0:
                        broken[place] = draw.randrange(256)
                    case 1:
                        del broken[place : place + draw.randrange(1, 40)]
                    case 2:
                        broken[place:place] = draw.choice([b'"', b"\0", b"\n", b"\xff\xfe", b",,,,", b"'", b"\r"])
                    case 3:
                        del broken[max(place, keep + 1) :]
            said = _sent(page, name, bytes(broken), far=turn in (0, 5))
            assert CELL not in said, (name, turn)
            opened += "What is known about the columns?" in said
    assert opened > 20  # the test is not about refusals alone


@pytest.mark.parametrize(
    "first",
    [f'a,"b\n1,{CELL}', f"1,33,{CELL},2020-01-05", f"a,{CELL * 20}", f"a,b\x07{CELL}", f",{CELL}", f"17,{CELL}"],
)
def test_a_first_line_that_looks_like_a_row_is_not_shown(tmp_path: Path, first: str) -> None:
    said = _sent(client(Session(tmp_path)), "v.csv", first.encode() + b"\n1,2,3,4\n")
    assert CELL not in said and "names" in said


def test_names_are_escaped(tmp_path: Path) -> None:
    page = client(Session(tmp_path))
    page.post(f"/{TOKEN}/open", files={"file": ("<b>.csv", b"<script>alert(1)</script>,b\nx,2\n")})
    said = page.get(f"/{TOKEN}/columns").text + page.get(f"/{TOKEN}/").text
    assert "<script>alert" not in said and "&lt;script&gt;" in said and "<b>" not in said


def test_a_missing_table_is_one_clear_error(tmp_path: Path) -> None:
    page = client(Session(tmp_path))
    for path in ("/nowhere/at/all.csv", "", str(tmp_path)):
        answer = page.post(f"/{TOKEN}/open", data={"path": path})
        assert answer.status_code == 422 and answer.text.count('role="alert"') == 1


def test_files_are_given_by_role_only(tmp_path: Path) -> None:
    page = client(Session(tmp_path))
    for what in ("report", "..%2F..%2Fetc%2Fpasswd", "/etc/passwd"):
        assert page.get(f"/{TOKEN}/file/{what}").status_code == 404


def test_what_is_typed_comes_back_from_the_schema() -> None:
    typed = {"kind": "number", "min": "0.5", "max": "9", "decimals": "2", "nullable": "on", "log": "on"}
    assert forms.typed(forms.facts(typed)) == typed
    listed = {"kind": "category", "values": "a\nb", "other": "c"}
    assert forms.typed(forms.facts(listed)) == listed
    whole = forms.facts({"kind": "category", "values": "1\n2"}, pa.int64())
    assert whole.known["values"] == [1, 2]


def test_metadata_fills_the_boxes(tmp_path: Path, table: Path) -> None:
    session = Session(tmp_path)
    session.open(str(table))
    page = client(session)
    codebook = b"name,type,label,values\nward,categorical,Ward,1 = surgery | 2 = medicine\n"
    assert page.post(f"/{TOKEN}/describe", files={"file": ("book.csv", codebook)}).status_code == 303
    assert session.boxes["ward"]["kind"] == "category"
    wrong = page.post(f"/{TOKEN}/describe", files={"file": ("book.json", b"{}")})
    assert wrong.status_code == 422 and wrong.text.count('role="alert"') == 1
    assert not list((tmp_path / ".sent").rglob("*.*"))


def test_a_file_in_another_notation_is_declared_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "patienten.csv"
    path.write_text("alter;kosten;aufnahme\n" + "41;1.234,50 €;05.01.2020\n" * 50, encoding="cp1252")
    session = Session(tmp_path / "out")
    page = client(session)
    written = {"reading.decimal": ",", "reading.thousands": ".", "reading.unit": "€ | EUR", "reading.date": "%d.%m.%Y"}
    assert page.post(f"/{TOKEN}/open", data={"path": str(path), **written}).status_code == 303
    assert list(session.fields) == ["alter", "kosten", "aufnahme"]
    typed = {
        "c0.kind": "integer", "c0.min": "0", "c0.max": "120", "c1.kind": "number", "c1.min": "0", "c1.max": "9999",
        "c2.kind": "date", "c2.first": "2020-01-01", "c2.last": "2020-12-31",
    }  # fmt: skip
    assert page.post(f"/{TOKEN}/columns", data=typed).status_code == 303
    reading = session.schema().reading
    assert (reading.decimal, reading.thousands, reading.unit, reading.date) == (",", ".", ("€", "EUR"), ("%d.%m.%Y",))
    assert session.expected_rows() == 50
    wrong = page.post(f"/{TOKEN}/open", data={"path": str(path), "reading.decimal": "x"})
    assert wrong.status_code == 422 and wrong.text.count('role="alert"') == 1 and "decimal" in wrong.text
    assert 'value="%d.%m.%Y"' in page.get(f"/{TOKEN}/").text  # what was typed stays


def test_the_same_command_is_shown(tmp_path: Path, table: Path) -> None:
    session = Session(tmp_path, epsilon=2.0, person="visit_id", most_rows=3)
    session.open(str(table))
    session.person = "visit_id"
    told = session.commands()
    assert "--epsilon 2" in told and "--unit person:visit_id,3" in told and str(table) in told


def test_facts_without_a_box_are_kept(tmp_path: Path, table: Path) -> None:
    session = Session(tmp_path)
    page = client(session)
    page.post(f"/{TOKEN}/open", data={"path": str(table)})
    metadata = (
        b'{"fields": [{"name": "admitted", "type": "date", "format": "%d.%m.%Y", '
        b'"constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"}}]}'
    )
    assert page.post(f"/{TOKEN}/describe", files={"file": ("d.json", metadata)}).status_code == 303
    assert "date = [" in page.get(f"/{TOKEN}/columns").text and "%d.%m.%Y" in session.schema_text
    typed = {"c3.kind": "date", "c3.first": "2020-01-01", "c3.last": "2021-12-31"}
    assert "%d.%m.%Y" in page.post(f"/{TOKEN}/columns/check", data=typed).json()["schema"]
    assert "%d.%m.%Y" not in page.post(f"/{TOKEN}/columns/check", data={"c3.kind": "id"}).json()["schema"]


def test_rules_of_a_description_are_taken_over(tmp_path: Path, table: Path) -> None:
    pytest.importorskip("sqlglot")
    session = Session(tmp_path)
    page = client(session)
    page.post(f"/{TOKEN}/open", data={"path": str(table)})
    told = b"create table visits (visit_id int primary key, age int check (age <= visit_id), check (age < visit_id));"
    assert page.post(f"/{TOKEN}/describe", files={"file": ("d.sql", told)}).status_code == 303
    assert "age < visit_id" in session.rules


def test_what_nobody_knows_is_bought(tmp_path: Path, table: Path) -> None:
    session = Session(tmp_path)
    page = client(session)
    assert page.get(f"/{TOKEN}/buy").status_code == 303  # no table yet
    page.post(f"/{TOKEN}/open", data={"path": str(table)})
    assert "not declared yet" in page.get(f"/{TOKEN}/buy").text
    for wrong, words in (({"epsilon": "1"}, "choose the columns"), ({"epsilon": "x", "c1": "on"}, "as numbers")):
        answer = page.post(f"/{TOKEN}/buy", data=wrong)
        assert answer.status_code == 422 and words in answer.text
    assert not session.ledger.exists()
    bought = {"c1": "on", "epsilon": "5", "limit": "6", "rows": "300"}
    assert page.post(f"/{TOKEN}/buy", data=bought).headers["location"].endswith("/buy")
    assert session.buying is not None
    session.buying.wait(120)
    assert page.get(f"/{TOKEN}/buy/state").json()["made"]
    assert page.get(f"/{TOKEN}/buy").headers["location"].endswith("/columns")
    said = page.get(f"/{TOKEN}/columns").text
    assert page.get(f"/{TOKEN}/buy").status_code == 200
    assert "Bought with noise" in said and CELL not in said
    boxes = session.boxes["age"]
    assert boxes["kind"] == "integer" and float(boxes["max"]) >= 60 and "bought = [" in session.schema_text
    assert 0.01 <= session.epsilon <= 1.1  # what is left of 6
    assert "dpmerf discover" in session.commands() and "--columns age" in session.commands()
    typed = page.post(f"/{TOKEN}/columns/check", data={"c1.kind": "integer", "c1.min": "0", "c1.max": "120"})
    assert '"max"' not in typed.json()["schema"].partition("bought")[2].partition("]")[0]
    spent = page.post(f"/{TOKEN}/buy", data={**bought, "epsilon": "6"})
    assert spent.status_code == 303
    session.buying.wait(120)
    assert "overspend" in page.get(f"/{TOKEN}/buy").text


def test_the_command_follows_the_slider(tmp_path: Path, table: Path) -> None:
    page = client(Session(tmp_path))
    page.post(f"/{TOKEN}/open", data={"path": str(table)})
    everything = {
        **{"c0.kind": "id", "c1.kind": "integer", "c1.min": "0", "c1.max": "99"},
        **{"c2.kind": "category", "c2.values": "a\nb", "c2.other": "b", "c3.kind": "leave out"},
    }
    page.post(f"/{TOKEN}/columns", data=everything)
    assert "--epsilon 0.3" in page.post(f"/{TOKEN}/plan/price", data={"epsilon": "0.3", "rows": "300"}).text


def test_lists_lie_beside_the_table(tmp_path: Path, table: Path) -> None:
    (tmp_path / "wards.csv").write_text(f"code,floor\n{CELL},1\nB,2\n")
    session = Session(tmp_path / "made")
    page = client(session)
    page.post(f"/{TOKEN}/open", data={"path": str(table)})
    everything = {
        **{"c0.kind": "id", "c1.kind": "integer", "c1.min": "1", "c1.max": "99"},
        **{"c2.kind": "category", "c2.values": "wards.csv#code", "c3.kind": "leave out"},
    }
    assert page.post(f"/{TOKEN}/columns", data=everything).status_code == 303, session.problems()
    assert "B" in Schema.load(tmp_path / "made" / "visits.toml").columns["ward"].values  # type: ignore[union-attr]
    lost = page.post(f"/{TOKEN}/columns/check", data={**everything, "c2.values": "nowhere.csv"}).json()
    assert lost["count"] == 1 and "cannot read" in lost["columns"]["2"][0]
