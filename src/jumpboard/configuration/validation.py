"""Hold a config, an inventory or a ledger against its schema, and say in one line what is wrong.

The schemas are JSON Schema draft 2020-12 in YAML, under workflow/schemas; every key has a description and no other key
is accepted.
"""

import difflib
import math
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from jumpboard.artefacts.code_digest import source_root
from jumpboard.errors import InputError


def _integer(checker: Any, value: Any) -> bool:
    """Integers in JSON Schema include 1.0, which paths and digests would not hold for 1."""
    return isinstance(value, int) and not isinstance(value, bool)


def _number(checker: Any, value: Any) -> bool:
    """JSON has no NaN and no infinity; YAML has."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _pattern(validator: Any, rule: str, value: Any, parent: Any) -> Iterator[ValidationError]:
    """Patterns here are of whole texts; Python's `$` alone would let a line break follow."""
    if isinstance(value, str) and not re.fullmatch(rule, value):
        yield ValidationError(f"{value!r} does not match {rule}")


TYPES = Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _integer, "number": _number})
Validator = extend(Draft202012Validator, {"pattern": _pattern}, type_checker=TYPES)  # type: ignore[no-untyped-call]


def checkout() -> Path:
    """The folder of the checkout that this package is imported from."""
    return source_root().parents[1]


@cache
def schema(name: str) -> dict[str, Any]:
    """The schema `workflow/schemas/<name>.schema.yaml`."""
    path = checkout() / "workflow" / "schemas" / f"{name}.schema.yaml"
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def _place(path: Iterable[Any]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")


def _unknown_key(place: str, keys: Iterable[Any], known: Iterable[str]) -> str:
    accepted = sorted(known)
    unknown = next(key for key in keys if key not in accepted)
    near = difflib.get_close_matches(str(unknown), accepted, n=1, cutoff=0.0)
    inside = f" in '{place}'" if place else ""
    return f"key '{unknown}'{inside} is not known; nearest: '{near[0]}'; accepted: {', '.join(accepted)}"


def _sentence(error: ValidationError) -> str:
    place = _place(error.absolute_path)
    value: Any = error.instance
    rule: Any = error.validator_value
    parent: Any = error.schema
    if "propertyNames" in error.absolute_schema_path:
        if error.validator == "enum":
            return _unknown_key(place, [value], rule)
        return f"{place or 'top level'} has the name {value!r}; accepted: names that match {parent['pattern']}"
    match error.validator:
        case "additionalProperties":
            return _unknown_key(place, value, parent.get("properties", {}))
        case "required":
            missing = [key for key in rule if key not in value]
            return f"{place or 'top level'} lacks the key '{missing[0]}'"
        case "type":
            accepted = rule if isinstance(rule, str) else " or ".join(rule)
            return f"{place or 'top level'} is {value!r}; accepted: {accepted}"
        case "enum":
            return f"{place} is {value!r}; accepted: {', '.join(map(str, rule))}"
        case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum":
            words = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}
            return f"{place} is {value!r}; accepted: {words.get(str(error.validator), 'less than')} {rule}"
        case "pattern":
            return f"{place or 'top level'} has {value!r}; accepted: text that matches {rule}"
    return f"{place or 'top level'}: {error.message}"


def validate(value: Any, name: str, source: str) -> None:
    """Raise InputError, naming `source`, the key and what is accepted, where `value` does not fit schema `name`."""
    errors = sorted(Validator(schema(name)).iter_errors(value), key=lambda error: list(map(str, error.path)))
    if errors:
        deepest = errors[0]
        while deepest.context:
            deepest = deepest.context[0]
        raise InputError(f"{source}: {_sentence(deepest)}")
