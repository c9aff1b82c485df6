"""The files of a contract (design §4): pure functions from a Contract to text."""

from collections.abc import Mapping, Sequence

from hiera_mcp.contracts.demo import render_torch_demo
from hiera_mcp.contracts.flat_abi import render_flat_abi, render_skeleton
from hiera_mcp.contracts.header import ALIGNMENT, prototypes, render_header, structs
from hiera_mcp.contracts.semantics_file import render_semantics
from hiera_mcp.model.contract import Contract
from hiera_mcp.model.space import source_file


def render_files(contract: Contract) -> dict[str, str]:
    """All files of a contract, name → text.

    contract.json, groundtruth.py (the reference, verbatim), torch_demo.py, params_semantics.json, contract.h,
    cpp_source.cpp, and the skeleton of the file that the agent writes (cuda_source.cu or cpu_source.cpp).
    """
    return {
        "contract.json": contract.model_dump_json(indent=1) + "\n",
        "groundtruth.py": contract.task.source,
        "torch_demo.py": render_torch_demo(contract),
        "params_semantics.json": render_semantics(contract),
        "contract.h": render_header(contract),
        "cpp_source.cpp": render_flat_abi(contract),
        source_file(contract.target): render_skeleton(contract),
    }


def interface_text(contract: Contract, lines: Mapping[str, Sequence[str]] | None = None) -> str:
    """What the agent implements: structs (see `structs`), the constants' naming rule, prototypes."""
    rule = "/* Shapes are constants: HIERA_DIM_<tensor>_<dimension>, HIERA_NUMEL_<tensor>."
    return (
        "\n\n".join(
            (
                structs(contract, lines),
                f"{rule}\n   Every pointer is a multiple of {ALIGNMENT} bytes. */",
                prototypes(contract),
            )
        )
        + "\n"
    )
