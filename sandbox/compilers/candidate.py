"""Which files a candidate may bring, and what has to be compiled for it."""

import re
from dataclasses import dataclass

from hiera_mcp.errors import RequestError
from hiera_mcp.model.space import MODEL_FILE, Space, is_cpu, source_file, spaces_of
from hiera_mcp.model.work import CheckRequest
from hiera_mcp.sandbox.compilers.base import BINDING, CONTRACT_HEADER, Compiler, Job, Tool
from hiera_mcp.sandbox.libraries import Library, installed

MOST_BYTES = 8 << 20
_HEADER = re.compile(r"[A-Za-z_][\w.+-]{0,99}\.(h|hpp|cuh)")


@dataclass(frozen=True)
class Plan:
    """How one candidate is built."""

    compiler: Compiler | None
    """None: nothing has to be compiled."""
    tool: Tool | None
    jobs: tuple[Job, ...]
    files: dict[str, str]
    """Files of the compile folder."""
    loaded: dict[str, str]
    """Candidate files that go to the runner as they are."""


def check_files(request: CheckRequest) -> None:
    """Refuse a candidate whose set of files is not legal.

    Raises:
        RequestError: an unknown name, a missing source, too much text; names what is valid.
    """
    for name in request.sources:
        _check_name(name, request)
    needed = required(request.space, request.contract.target)
    if not any(name in request.sources for name in needed):
        raise RequestError("The candidate has no source file.", todo="Send its text under its name.", valid=needed)
    if sum(len(text) for text in request.sources.values()) > MOST_BYTES:
        raise RequestError(
            f"The candidate's files hold more than {MOST_BYTES >> 20} MiB of text.", todo="Shorten them."
        )


def required(space: Space, target: str) -> tuple[str, ...]:
    """Files of which a candidate needs one."""
    return (source_file(target), MODEL_FILE) if space.allows_pytorch else (source_file(target),)


def is_python(request: CheckRequest) -> bool:
    """Whether the candidate is a ModelNew, which calls its compiled functions itself."""
    return MODEL_FILE in request.sources


def plan(request: CheckRequest, compiler: Compiler) -> Plan:
    """What to compile, and with what.

    Raises:
        ToolchainError: the compiler is missing.
    """
    source = source_file(request.contract.target)
    loaded = dict(request.sources) if is_python(request) else {}
    if source not in request.sources:
        return Plan(None, None, (), {}, loaded)
    tool = compiler.find(request.contract.target)
    jobs = _jobs(request, source, _libraries(request, tool))
    fixed = {name: request.files[name] for name in (CONTRACT_HEADER, BINDING) if name in request.files}
    compiled = {name: text for name, text in request.sources.items() if name != MODEL_FILE}
    return Plan(compiler, tool, jobs, {**fixed, **jobs[0].preludes, **compiled}, loaded)


def _jobs(request: CheckRequest, source: str, libraries: tuple[Library, ...]) -> tuple[Job, ...]:
    binding = not is_python(request)
    target = request.contract.target
    return tuple(Job(target, case, source, binding, libraries) for case in range(len(request.contract.cases)))


def _libraries(request: CheckRequest, tool: Tool) -> tuple[Library, ...]:
    return installed(request.contract.target, tool.toolkit) if request.space.allows_libraries else ()


def _check_name(name: str, request: CheckRequest) -> None:
    target, space = request.contract.target, request.space
    if name == MODEL_FILE and not space.allows_pytorch:
        raise RequestError(
            f"{MODEL_FILE} is a file of the space {spaces_of(target)[-1]}, and the chosen space is {space}.",
            todo="Choose that space, or send only the source file.",
            valid=_legal_names(request),
        )
    if name in (source_file(target), MODEL_FILE):
        return
    if not _HEADER.fullmatch(name) or name in request.files or name.startswith("hiera_"):
        raise RequestError(f"{name!r} is not a file that a candidate may bring.", valid=_legal_names(request))


def _legal_names(request: CheckRequest) -> list[str]:
    headers = "own headers with a plain name: *.h, *.hpp" + ("" if is_cpu(request.contract.target) else ", *.cuh")
    return [*required(request.space, request.contract.target), f"{headers} (not {', '.join(_fixed(request))})"]


def _fixed(request: CheckRequest) -> list[str]:
    return [name for name in request.files if name.endswith((".h", ".cpp"))] or [CONTRACT_HEADER]
