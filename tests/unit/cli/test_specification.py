"""What `contract build` prints of a contract."""

from hiera_mcp.cli.report import specification_lines
from hiera_mcp.client.report import ContractView, FeaturesView, FloorView

VIEW = ContractView(
    contract_id="c_0",
    task="relu",
    target="cpu",
    precision="float32",
    spaces=("cpp",),
    source_file="cpu_source.cpp",
    floor=FloorView(seconds=1e-3, arithmetic="1 MB / 1 GB/s", elsewhere="H200 2 µs (memory)"),
    features=FeaturesView(operators=("aten.relu ×1", "… and 7 more: hiera://contracts/c_0/lists/operators")),
    tolerance="each element within a limit",
    degeneracy="none",
    notes=("mode: train",),
)


def test_floors_operators_tolerance_and_notes_are_printed() -> None:
    assert specification_lines(VIEW) == [
        "Contract c_0: relu on cpu, float32",
        "  floor 1.00 ms per call (1 MB / 1 GB/s)",
        "  elsewhere: H200 2 µs (memory)",
        "  operator: aten.relu ×1",
        "  … and 7 more: hiera://contracts/c_0/lists/operators",
        "  right when: each element within a limit",
        "  trivial outputs: none",
        "  note: mode: train",
    ]


def test_an_answer_of_an_older_server_is_printed_without_what_it_lacks() -> None:
    bare = VIEW.model_copy(update={"features": FeaturesView(), "tolerance": "", "degeneracy": "", "notes": ()})
    assert len(specification_lines(bare)) == 3
