"""Metrics as Prometheus reads them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from lamina.reports.metrics import EVERY


def every_metric(text: str) -> list[Sample]:
    """The samples that Prometheus reads in a text, which has every metric of `EVERY` and no other."""
    families = [*text_string_to_metric_families(text)]
    samples = [sample for family in families for sample in family.samples]
    assert {sample.name for sample in samples} <= {metric.name for metric in EVERY}
    assert {family.name for family in families} == {metric.name.removesuffix("_total") for metric in EVERY}
    return samples
