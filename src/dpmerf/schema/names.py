"""Names: what a column's name and stored type suggest about it. No value is looked at; a person has the last word."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from dpmerf.schema.columns import KINDS
from dpmerf.schema.facts import Facts, column

_SUGGESTED = "suggested by its name: check"
_PERSONAL = "a key or a text, by its name: never learned, made up on output"
# Words of a name (split at _, -, ., blanks and capitals), in English with the most frequent German and French ones.
_ID = {"id", "ids", "uuid", "guid", "key", "pk", "mrn", "ssn", "nhs", "iban", "pid", "fallnummer", "kennung"}
_ID_WHOLE = {
    "name", "first_name", "last_name", "full_name", "surname", "firstname", "lastname", "nachname", "vorname", "nom",
    "prenom", "email", "e_mail", "mail", "phone", "phone_number", "telephone", "telefon", "mobile", "address", "street",
    "adresse", "strasse", "ip", "ip_address", "url", "username", "user_name", "license_plate", "credit_card_number",
    "passport", "medical_record_number", "social_security_number", "comment", "comments", "notes", "remarks",
}  # fmt: skip
_FLAG_FIRST = {"is", "has", "was", "had", "can", "ist", "hat"}
_FLAG_LAST = {"flag", "yn", "bool", "indicator"}
_DATE = {"date", "datum", "dob", "birthdate", "birthday", "day", "geburtsdatum", "dt"}
_MOMENT = {"at", "timestamp", "datetime", "ts"}
_WHOLE = {
    "age", "alter", "year", "jahr", "month", "count", "n", "num", "number", "anzahl", "visits", "days", "hours",
    "children", "minutes", "rooms", "quantity", "qty",
}  # fmt: skip
_REAL = {
    "kg", "cm", "mm", "mg", "ml", "weight", "height", "bmi", "price", "amount", "cost", "costs", "charge", "charges",
    "salary", "income", "temperature", "rate", "ratio", "percent", "pct", "score", "lat", "lon", "latitude",
    "longitude", "eur", "usd", "fee", "dose", "gewicht", "preis", "betrag", "euro",
}  # fmt: skip


def words(name: str) -> list[str]:
    """The words of a name, in small letters.

    >>> words("patientID"), words("Discharged_at")
    (['patient', 'id'], ['discharged', 'at'])
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [w for w in re.split(r"[^a-z0-9äöüßéèêç]+", parted.lower()) if w]


def kind_by_name(name: str) -> str | None:
    """The kind that a name suggests; None where it says nothing.

    >>> [kind_by_name(n) for n in ("patient_id", "is_smoker", "weight_kg", "admitted_at", "ward")]
    ['id', 'flag', 'number', 'timestamp', None]
    """
    found = words(name)
    if not found:
        return None
    if "_".join(found) in _ID_WHOLE or found[-1] in _ID or (found[0] == "id" and len(found) > 1):
        return "id"
    if (found[0] in _FLAG_FIRST and len(found) > 1) or found[-1] in _FLAG_LAST:
        return "flag"
    if found[-1] in _MOMENT and (len(found) > 1 or found[-1] != "at"):
        return "timestamp"
    if found[0] in _DATE or found[-1] in _DATE:
        return "date"
    if found[-1] in _REAL:
        return "number"
    if found[-1] in _WHOLE or found[0] in {"n", "num", "number", "anzahl"}:
        return "integer"
    return None


def suggest(name: str, stored: pa.DataType | None) -> Facts:
    """Facts for a draft: the kind by stored type, by name where the type leaves it open, and no bound at all."""
    named = kind_by_name(name)
    if stored is None:
        if named == "id":
            return Facts("id", notes=(_PERSONAL, _SUGGESTED))
        return Facts(named, notes=(_SUGGESTED,) if named else ())
    if named == "id" and not _continuous(stored):
        return Facts("id", notes=(_PERSONAL,), known=_dtype(stored))
    return _typed(stored)


def _typed(stored: pa.DataType) -> Facts:
    for kind, declared in KINDS.items():
        if (found := declared.stored_as(stored)) is not None:
            return column(kind, nullable=False, **(_dtype(stored) | found))
    return Facts("id", notes=("a type that cannot be learned",))


def _dtype(stored: pa.DataType) -> dict[str, Any]:
    return {} if _natural(stored) else {"dtype": str(stored)}


def _continuous(stored: pa.DataType) -> bool:
    return pa.types.is_floating(stored) or pa.types.is_temporal(stored) or pa.types.is_boolean(stored)


def _natural(stored: pa.DataType) -> bool:
    """Is it what a kind is written as anyway? Where that depends on what is declared, text and whole numbers are."""
    return stored in (pa.string(), pa.int64()) or any(stored == kind.usual for kind in KINDS.values())
