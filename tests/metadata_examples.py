"""Small versions of the examples that each metadata format publishes of itself."""

from typing import Any

HOTEL: dict[str, Any] = {  # the example of SDV's documentation
    "METADATA_SPEC_VERSION": "V1",
    "tables": {
        "hotels": {
            "primary_key": "hotel_id",
            "columns": {
                "hotel_id": {"sdtype": "id", "regex_format": "HID_[0-9]{3}"},
                "city": {"sdtype": "categorical"},
                "rating": {"sdtype": "numerical"},
            },
        },
        "guests": {
            "primary_key": "guest_email",
            "columns": {
                "guest_email": {"sdtype": "email", "pii": True},
                "has_rewards": {"sdtype": "boolean"},
                "checkin_date": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
                "left": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M"},
                "nights": {"sdtype": "numerical", "computer_representation": "Int64"},
                "billing_address": {"sdtype": "address", "pii": True},
            },
        },
    },
    "relationships": [],
}
FIELDS: dict[str, Any] = {  # a table schema as in the specification, with version 2's categories
    "fields": [
        {"name": "id", "type": "integer"},
        {"name": "fruit", "type": "string", "categories": [{"value": "apple", "label": "Apple"}, {"value": "kiwi"}]},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120, "required": True}},
        {"name": "height", "type": "number", "constraints": {"minimum": "0.5", "exclusiveMaximum": 3}},
        {"name": "born", "type": "date", "format": "%d.%m.%Y", "constraints": {"minimum": "1900-01-01"}},
        {"name": "mail", "type": "string", "format": "email"},
        {"name": "place", "type": "geopoint"},
    ],
    "primaryKey": ["id"],
}
TITANIC: dict[str, Any] = {  # MLCommons' titanic, cut down
    "@context": {"cr": "http://mlcommons.org/croissant/"},
    "conformsTo": "http://mlcommons.org/croissant/1.0",
    "recordSet": [
        {
            "name": "genders",
            "dataType": "sc:Enumeration",
            "key": {"@id": "genders/label"},
            "field": [{"@id": "genders/label", "name": "genders/label", "dataType": "sc:Text"}],
            "data": [{"genders/label": "male"}, {"genders/label": "female"}],
        },
        {
            "name": "passengers",
            "field": [
                {
                    "@id": "passengers/gender",
                    "name": "gender",
                    "dataType": "sc:Text",
                    "references": {"field": {"@id": "genders/label"}},
                    "source": {"fileObject": {"@id": "p.csv"}, "extract": {"column": "sex"}},
                },
                {"@id": "passengers/age", "name": "age", "dataType": "sc:Float"},
                {"@id": "passengers/embarked", "name": "embarked", "references": {"field": {"@id": "ports/key"}}},
                {"@id": "passengers/survived", "name": "survived", "dataType": ["sc:Boolean"]},
                {"@id": "passengers/photo", "name": "photo", "dataType": "sc:ImageObject"},
            ],
        },
    ],
}
TREES: dict[str, Any] = {  # the W3C's tree operations
    "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
    "url": "tree-ops-ext.csv",
    "tableSchema": {
        "columns": [
            {"name": "GID", "titles": ["GID", "Generic Identifier"], "datatype": "string", "required": True},
            {"name": "on_street", "titles": "On Street", "datatype": "string"},
            {
                "name": "dbh",
                "titles": {"en": "Diameter"},
                "datatype": {"base": "integer", "minimum": "1", "maximum": "99"},
            },
            {"name": "inventory_date", "datatype": {"base": "date", "format": "M/d/yyyy"}, "required": True},
            {"name": "comments", "datatype": "string", "separator": ";"},
            {"name": "protected", "datatype": {"base": "boolean", "format": "YES|NO"}},
            {"name": "kml", "datatype": "xml"},
            {"name": "made", "virtual": True},
        ],
        "primaryKey": "GID",
    },
}
PLACE: dict[str, Any] = {  # json-schema.org's geographical location, and a little more
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["latitude", "longitude"],
    "properties": {
        "latitude": {"type": "number", "minimum": -90, "maximum": 90},
        "longitude": {"type": "number", "minimum": -180, "exclusiveMaximum": 180},
        "floors": {"type": "integer", "exclusiveMinimum": 0, "maximum": 100, "multipleOf": 2},
        "use": {"$ref": "#/$defs/use"},
        "built": {"type": ["string", "null"], "format": "date"},
        "owner": {"type": "string", "format": "email"},
        "rooms": {"type": "array"},
    },
    "$defs": {"use": {"enum": ["home", "shop", None]}},
}
REDCAP = (
    '"Variable / Field Name","Form Name","Field Type","Field Label","Choices, Calculations, OR Slider Labels",'
    '"Text Validation Type OR Show Slider Number","Text Validation Min","Text Validation Max",Identifier?,'
    '"Required Field?"\n'
    "record_id,demo,text,Study ID,,,,,y,\n"
    'sex,demo,radio,Gender,"1, Male | 2, Female",,,,,y\n'
    "height,demo,text,Height (cm),,number,30,215,,\n"
    "dob,demo,text,Date of birth,,date_ymd,1900-01-01,2024-12-31,,y\n"
    "smoker,demo,yesno,Smokes,,,,,,\n"
    "remarks,demo,notes,Remarks,,,,,,\n"
)
DDL = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE films (
    code        char(5) CONSTRAINT firstkey PRIMARY KEY,
    title       varchar(40) NOT NULL,
    did         integer NOT NULL REFERENCES distributors,
    date_prod   date CHECK (date_prod >= '1890-01-01' AND date_prod < DATE '2030-01-01'),
    kind        varchar(10) CHECK (kind IN ('drama', 'comedy')),
    minutes     smallint NOT NULL CHECK (minutes BETWEEN 1 AND 999),
    price       numeric(8, 2) CHECK (0 <= price),
    feeling     mood,
    seen        boolean DEFAULT false,
    poster      bytea,
    CHECK (price < 1000),
    CHECK (date_prod <= released),
    released    date
);
"""
