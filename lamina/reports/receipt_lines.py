"""The output of `lamina receipt` and `lamina verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from lamina.terminal.render import Output
from master_log.offsets import brief
from serving_layer.readers.analyst import PageSelect, select
from serving_layer.readers.receipts import Receipt
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import postgres_text

if TYPE_CHECKING:
    from batch_layer.verify import Verification

LONGEST = 16_000_000
"""Characters that a receipt may have. It holds some hundred for each column and each partition."""


def line_of(url: str, view: str, statement: PageSelect | None = None) -> str:
    """The receipt of a view, read as the role that `url` names."""
    [(line,)] = select(url, f"SELECT lamina.receipt({postgres_text(view)})", statement=statement)[1]
    return str(line)


def read(file: TextIO) -> Receipt:
    """The receipt in a file. Reads no more of the file than a receipt may have."""
    try:
        text = file.read(LONGEST + 1)
    except UnicodeDecodeError as error:
        raise _not_a_receipt(str(error)) from error
    if len(text) > LONGEST:
        raise _not_a_receipt(f"it is longer than {LONGEST:,} characters")
    return Receipt.read(text.removeprefix("\ufeff"))


def _not_a_receipt(evidence: str) -> LaminaError:
    return LaminaError("This is not a receipt", evidence=evidence, way_out="`lamina receipt VIEW` prints one.")


def show(output: Output, verified: Verification) -> None:
    """Shows the result of verifying a receipt."""
    receipt = verified.receipt
    signed, computed = receipt.digest, verified.recomputed
    result = "equal" if verified.equal else "DIFFERENT"
    if output.as_json:
        output.record(
            {
                "view": receipt.view,
                "read_at": receipt.read_at,
                "rows": signed.rows,
                "rows_by_the_log": computed.rows,
                "result": result,
                "differs": verified.differing,
                "left_out": computed.left_out,
                "spark": verified.spark,
                "sparks_of_the_receipt": sorted(receipt.sparks),
            }
        )
        return
    row = (receipt.view, receipt.read_at, signed.rows, computed.rows, result)
    output.table(("view", "read at", "rows", "rows by the log", "result"), [row])
    for name, counted in receipt.sources.items():
        if counted.begins.positive:
            output.tell(f"{name} begins at {brief(str(counted.begins.positive))}: earlier records are not part of it")
    for difference in verified.differing:
        output.tell(f"{receipt.view}: the receipt and the log differ in {difference}")
    if verified.differing and verified.other_sparks:
        others = ", ".join(verified.other_sparks)
        output.tell(f"{receipt.view}: so does Spark: {others} computed the view, {verified.spark} verified it")
    if computed.left_out:
        output.tell(f"not in the digest, for the doubles nested in them: {', '.join(computed.left_out)}")
