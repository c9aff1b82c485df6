"""Can the server's host do the work at all? Asked before a run, so that a missing tool gets one clear line."""

from pathlib import Path

from mcp import Client

from hiera_mcp.client.session import Session
from hiera_mcp.errors import NoIsolationError, ToolchainError
from hiera_mcp.model.space import is_cpu
from hiera_mcp.model.work import DoctorReport, TargetReport

DOCTOR = "hiera://doctor"
DEMO = Path(__file__).parent / "demo"


async def ask_doctor(client: Client) -> DoctorReport:
    """What the server's host offers; isolation is tried by doing."""
    return await Session(client).read_as(DoctorReport, DOCTOR)


def pick_target(report: DoctorReport) -> str:
    """The first CUDA target that runs on the host, else `cpu`.

    Raises:
        NoIsolationError: untrusted code cannot be isolated on the host.
        ToolchainError: the target does not run there; says what to install.
    """
    require_isolation(report)
    cuda = [t.target for t in report.targets if t.runs and not is_cpu(t.target)]
    return cuda[0] if cuda else _require_cpu(report.targets, report)


def require_isolation(report: DoctorReport) -> None:
    """Nothing runs without isolation."""
    if report.chosen is None:
        tried = "; ".join(f"{i.backend}: {i.reason}" for i in report.isolation if not i.usable)
        raise NoIsolationError(f"Candidates cannot be isolated on this host ({tried}).", todo=_advice(report))


def _require_cpu(targets: tuple[TargetReport, ...], report: DoctorReport) -> str:
    cpu = next((t for t in targets if is_cpu(t.target)), None)
    if cpu is None or not (cpu.compiles and cpu.runs):
        why = cpu.reason if cpu else "the host does not offer it"
        raise ToolchainError(f"The target cpu does not run here: {why}", todo=_advice(report))
    return cpu.target


def _advice(report: DoctorReport) -> str:
    return " ".join(report.advice)


def demo_folder(target: str) -> Path:
    """The shipped task and candidates for a target."""
    return DEMO / ("cpu" if is_cpu(target) else "cuda")
