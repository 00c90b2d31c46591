"""Receipts as an analyst takes them, and their verification."""

from __future__ import annotations

from batch_layer.verify import Verification, verify
from serving_layer.readers.receipts import Receipt
from tests.fix_lamina import Deployed


def receipt(deployed: Deployed, view: str) -> str:
    """The receipt of a view, as an analyst."""
    [(line,)] = deployed.rows(f"SELECT lamina.receipt('{view}')")
    return str(line)


def verified(deployed: Deployed, line: str) -> Verification:
    opened = deployed.deployment
    return verify(opened.database, opened.spark(), opened.log(), opened.brokers, Receipt.read(line))
