"""From compiled cases to what is remembered of a build. Pure."""

import shlex

from hiera_mcp.model.evaluation import Build, Diagnostic, KernelResources
from hiera_mcp.model.space import MODEL_FILE
from hiera_mcp.sandbox.compilers import diagnostics
from hiera_mcp.sandbox.compilers.base import Compiler, Tool
from hiera_mcp.sandbox.compilers.cache import Record
from hiera_mcp.sandbox.compilers.candidate import Plan
from hiera_mcp.sandbox.compilers.compile import Compiled
from hiera_mcp.sandbox.compilers.inspect import Insight
from hiera_mcp.sandbox.libraries import known
from hiera_mcp.sandbox.space import Evidence


def nothing_to_compile() -> Record:
    build = Build(ok=True, command=f"(nothing to compile: {MODEL_FILE} is loaded as it is)", seconds=0.0)
    return Record(build=build, evidence=Evidence(), instruction_mix={}, failure=None, reason="", compiler="")


def record(
    plan: Plan,
    compiler: Compiler,
    tool: Tool,
    cases: tuple[Compiled, ...],
    kernels: tuple[KernelResources, ...],
    insight: Insight,
    seconds: float,
) -> Record:
    """The record of a build. `cases` are all of them, or the one that failed."""
    first = cases[0]
    said = _diagnostics(first, plan)
    build = Build(
        ok=first.failure is None,
        command=shown(shlex.join((tool.name, *compiler.command(tool, plan.jobs[0])[1:])), plan),
        seconds=seconds,
        diagnostics=said,
        log=diagnostics.cut(diagnostics.scrub(shown(first.log, plan))),
        kernels=kernels,
    )
    return Record(
        build=build,
        evidence=_evidence(cases, plan, insight),
        instruction_mix=insight.mix,
        failure=first.failure,
        reason=_reason(first, said),
        compiler=tool.version,
    )


def settled(found: Record) -> bool:
    """Whether the same input would give the same result: not so for a limit, or a failure without a stated error."""
    stated = any(d.severity == "error" for d in found.build.diagnostics)
    return found.failure is None or (found.failure == "compile_error" and stated)


def shown(text: str, plan: Plan) -> str:
    """Text with the host's folders of libraries and of the toolkit replaced by their names."""
    labels = {str(b.host): f"<{lib.name}>" for job in plan.jobs for lib in job.libraries for b in lib.binds}
    if plan.tool is not None and plan.tool.toolkit is not None:
        labels[str(plan.tool.toolkit)] = "<cuda>"
    for folder in sorted(labels, key=len, reverse=True):
        text = text.replace(folder, labels[folder])
    return text


def _evidence(cases: tuple[Compiled, ...], plan: Plan, insight: Insight) -> Evidence:
    log = "\n".join(case.log for case in cases)
    dynamic = [case.dynamic for case in cases if case.dynamic is not None]
    includes = dict.fromkeys(name for case in cases for name in case.includes)
    return Evidence(
        includes=tuple(name for name in includes if name not in plan.files),
        missing_includes=diagnostics.missing_includes(log),
        needed=tuple(dict.fromkeys(n for d in dynamic for n in d.needed)),
        symbols=tuple(dict.fromkeys(s for d in dynamic for s in d.undefined)),
        unresolved=diagnostics.unresolved(log),
        instructions=insight.forbidden,
    )


def _diagnostics(case: Compiled, plan: Plan) -> tuple[Diagnostic, ...]:
    found = diagnostics.parse(shown(case.log, plan), case.job.source)
    absent = diagnostics.missing_includes(case.log) if case.failure else ()
    hints = (diagnostics.install_hint(name, known(case.job.target)) for name in absent)
    return (*found, *(Diagnostic(severity="note", file=case.job.source, line=None, text=h) for h in hints if h))


def _reason(case: Compiled, said: tuple[Diagnostic, ...]) -> str:
    error = next((d for d in said if d.severity == "error"), None)
    if case.failure != "compile_error" or error is None:
        return case.reason
    place = error.file if error.line is None else f"{error.file}:{error.line}"
    return f"{place}: {error.text}"
