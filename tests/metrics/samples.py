"""An exposition as a mapping from (name, labels) to value, read by prometheus_client's own parser."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str | bytes) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode() if isinstance(text, bytes) else text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"twice: {sample}"
            found[key] = sample.value
    return found


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def label_values(found: Samples, name: str, label: str) -> set[str]:
    return {dict(labels)[label] for sample, labels in found if sample == name}
