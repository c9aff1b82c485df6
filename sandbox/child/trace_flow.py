"""What the recorder saw, as rows of a Trace: kinds of calls, and the calls that launch work with the values between them."""

from typing import Any

from hiera_mcp.sandbox.child.trace_ops import Record


def flow(record: Record) -> dict[str, Any]:
    """Trace.operators, calls and values. Kinds that never ran (memory that was only allocated) are left out."""
    ran = [n for n, row in enumerate(record.operators) if row["count"]]
    number = {old: new for new, old in enumerate(ran)}
    rows = [{k: v for k, v in record.operators[n].items() if k != "piece_bytes"} for n in ran]
    calls = [{**call, "operator": number[call["operator"]]} for call in record.calls]
    return {"operators": rows, "calls": calls, "values": record.values}
