"""The reference page lists every key that the models read, as they are now."""

from pathlib import Path

from dpmerf.schema.columns import Category, Date, Flag, Id, Image, Integer, Number, Timestamp
from dpmerf.schema.notation import Reading
from dpmerf.schema.reference import page
from dpmerf.schema.relations import Combination, Learn, Lookup, Rule

MODELS = (Category, Number, Integer, Date, Timestamp, Flag, Id, Image, Reading, Rule, Learn, Lookup, Combination)
PAGE = Path(__file__).parents[2] / "docs" / "schema.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m dpmerf.schema.reference > docs/schema.md"


def test_every_key_is_on_it() -> None:
    text = page()
    for model in (
        Category,
        Number,
        Integer,
        Date,
        Timestamp,
        Flag,
        Id,
        Image,
        Reading,
        Rule,
        Learn,
        Lookup,
        Combination,
    ):
        for key in model.model_fields:
            assert f"`{key}`" in text or key == "kind", (model, key)
