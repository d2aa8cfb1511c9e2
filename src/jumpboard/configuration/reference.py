"""`config/README.md` from the schemas: every key with its type and meaning.

python -m jumpboard.configuration.reference > config/README.md
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jumpboard.configuration.validation import schema

HEAD = """# Configuration

`config.yaml` is the embedded default. `smoke.yaml` is an overlay on it: mappings merge key by key, lists are replaced.
Run one with `snakemake --cores all --configfile config/smoke.yaml`; change single keys with `--config key=value`.
Each config needs folders of its own for results, figures and logs.

`datasets.yaml` is the inventory of data sets, `claims.yaml` the ledger of claims with the rules that judge them.

This page is written from `workflow/schemas`, which every config is held against: a key that is not listed here is
refused.
"""


def _accepts(rule: Mapping[str, Any]) -> str:
    if "enum" in rule:
        return " or ".join(f"`{value}`" for value in rule["enum"])
    kind = rule.get("type", "")
    if kind == "array":
        return f"list of {_accepts(rule.get('items', {}))}"
    limits = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    bounds = ", ".join(f"{words} {rule[name]}" for name, words in limits.items() if name in rule)
    return f"{kind} {bounds}".strip()


def _lines(rule: Mapping[str, Any], place: str) -> Iterator[str]:
    required = rule.get("required", [])
    for key, inner in rule.get("properties", {}).items():
        name = f"{place}.{key}" if place else key
        needed = "" if key in required else " (optional)"
        yield f"| `{name}` | {_accepts(inner)}{needed} | {' '.join(inner.get('description', '').split())} |"
        yield from _inside(inner, name)


def _inside(rule: Mapping[str, Any], name: str) -> Iterator[str]:
    if rule.get("type") == "array":
        yield from _lines(rule.get("items", {}), f"{name}[]")
        return
    yield from _lines(rule, name)
    if isinstance(rule.get("additionalProperties"), Mapping):
        yield from _lines(rule["additionalProperties"], f"{name}.<name>".lstrip("."))


def reference() -> str:
    """The page."""
    page = [HEAD]
    for name in ("config", "datasets", "claims"):
        rule = schema(name)
        page += [f"## {name}.yaml", "", rule["description"], "", "| key | accepts | meaning |", "|---|---|---|"]
        page += [*_inside(rule, ""), ""]
    return "\n".join(page)


if __name__ == "__main__":
    print(reference(), end="")
