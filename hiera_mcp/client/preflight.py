"""Can the server's host do the work at all? Asked before a run, so that a missing tool gets one clear line."""

from pathlib import Path

from mcp import Client

from hiera_mcp.client.session import Session
from hiera_mcp.errors import NoIsolationError, ToolchainError
from hiera_mcp.model.space import is_cpu
from hiera_mcp.model.work import DoctorReport

DOCTOR = "hiera://doctor"
THOROUGH = "hiera://doctor?thorough=true"
DEMO = Path(__file__).parent / "demo"


async def ask_doctor(client: Client, *, thorough: bool = False) -> DoctorReport:
    """What the server's host offers; isolation is tried by doing, with `thorough` each backend of it."""
    return await Session(client).read_as(DoctorReport, THOROUGH if thorough else DOCTOR)


def pick_target(report: DoctorReport, wanted: str | None = None) -> str:
    """`wanted`, else the first CUDA target that runs on the host, else `cpu`.

    Raises:
        NoIsolationError: untrusted code cannot be isolated on the host.
        ToolchainError: the target does not run there; says what to install.
    """
    require_isolation(report)
    cuda = [t.target for t in report.targets if t.runs and not is_cpu(t.target)]
    target = wanted or next(iter(cuda), "cpu")
    found = next((t for t in report.targets if t.target == target), None)
    if found is None:
        raise ToolchainError(f"This host does not know the target {target}.", valid=[t.target for t in report.targets])
    if not found.runs:
        raise ToolchainError(f"The target {target} does not run on this host: {found.reason.rstrip('.')}.")
    return target


def require_isolation(report: DoctorReport) -> None:
    """Nothing runs without isolation."""
    if report.chosen is None:
        tried = "; ".join(f"{i.backend}: {i.reason.rstrip('.')}" for i in report.isolation if not i.usable)
        what = f"Candidates cannot be isolated on this host ({tried})."
        raise NoIsolationError(what, todo=f"bwrap is {report.tools['bwrap']}. `hiera-mcp doctor` says more.")


def demo_folder(target: str) -> Path:
    """The shipped task and candidates for a target."""
    return DEMO / ("cpu" if is_cpu(target) else "cuda")
