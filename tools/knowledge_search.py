"""hiera_knowledge_search: expert entries and the lessons of earlier runs."""

from typing import Annotated

from pydantic import Field

from hiera_mcp.deps import Deps
from hiera_mcp.model.base import Model
from hiera_mcp.model.knowledge import Entry, Match
from hiera_mcp.model.memory import Lesson
from hiera_mcp.model.space import Direction, Space
from hiera_mcp.model.switches import switches_of
from hiera_mcp.planning.signals import signals
from hiera_mcp.tools.base import READS, Ctx, Tool, deps_of
from hiera_mcp.tools.evidence import evidence_of
from hiera_mcp.tools.lesson_record import proof_line
from hiera_mcp.tools.run_state import RunState, load_run


class EntryLine(Model):
    """One entry in short."""

    slug: str
    title: str
    direction: Direction | None
    """Null for an entry about a library."""
    kind: str
    summary: str
    why: str
    """With a run: the conditions of its signature that hold there, fail, and cannot be read yet; otherwise empty."""
    uri: str
    """Steps, constraints, pitfalls, numbers and sources are there."""


class LessonLine(Model):
    """What a run taught, here or on a host whose memory was imported."""

    id: str
    title: str
    text: str
    candidate_ids: tuple[str, ...]
    direction: Direction | None
    space: Space | None
    at: str
    proof: tuple[str, ...]
    """What its candidates showed."""


class Found(Model):
    """What matched."""

    entries: tuple[EntryLine, ...]
    """The best match first."""
    lessons: tuple[LessonLine, ...]
    """What earlier runs taught."""
    next_step: str


async def hiera_knowledge_search(
    ctx: Ctx,
    query: Annotated[
        str, Field(max_length=500, description="Words; nothing in it is syntax. Empty: all that pass.")
    ] = "",
    direction: Direction | None = None,
    space: Space | None = None,
    arch: Annotated[str | None, Field(description="cpu, sm_80, sm_90a, … or a whole target.")] = None,
    run_id: Annotated[
        str | None, Field(description="Rank by how well entries fit this run; its target is the default of arch.")
    ] = None,
    limit: Annotated[int, Field(ge=1, le=20)] = 5,
) -> Found:
    """Search expert techniques, library guides and recorded lessons.

    Use it while planning a strategy, or when a candidate does not behave. Returns entries in short (what for, expected
    effect) and lessons with the candidates that prove them. With run_id entries that fit the run's contract and
    evidence come first. Read an entry whole with hiera_artifact_read(uri).
    """
    deps = deps_of(ctx)
    remembers = switches_of(deps.settings.plan).memory
    if run_id is None:
        entries = deps.knowledge.search(query, direction, space, arch, limit)  # shorter than the way to a thread
        lines = tuple(_line(entry) for entry in entries)
    else:
        state = await deps.database(lambda s: load_run(s, run_id))
        remembers = state.run.switches.memory
        lines = tuple(_line(m.entry, m.why) for m in await _fitting(deps, state, query, direction, space, arch, limit))
    lessons = await deps.database.glance(lambda s: s.lessons(query, limit, direction, space)) if remembers else ()
    return Found(entries=lines, lessons=tuple(map(_lesson_line, lessons)), next_step=_next_step(lines))


async def _fitting(
    deps: Deps,
    state: RunState,
    query: str,
    direction: Direction | None,
    space: Space | None,
    arch: str | None,
    limit: int,
) -> tuple[Match, ...]:
    """Entries in the order of how well they fit a run."""
    evidence = await evidence_of(deps, state)
    place = arch or evidence.target
    return deps.knowledge.matching(signals(evidence), direction, space, place, limit, query)


def _line(entry: Entry, why: str = "") -> EntryLine:
    return EntryLine(
        slug=entry.id,
        title=entry.title,
        direction=entry.direction,
        kind=entry.kind,
        summary=f"{entry.steps[0]} Moves {entry.must_move}: {entry.expected}",
        why=why,
        uri=f"hiera://knowledge/{entry.id}",
    )


def _lesson_line(lesson: Lesson) -> LessonLine:
    plain = {name: getattr(lesson, name) for name in LessonLine.model_fields if name != "proof"}
    return LessonLine(**plain, proof=tuple(proof_line(p) for p in lesson.proof))


def _next_step(entries: tuple[EntryLine, ...]) -> str:
    if not entries:
        return "Nothing matched: use fewer words or filters."
    return f"Read one whole with hiera_artifact_read(uri='{entries[0].uri}')."


TOOL = Tool(hiera_knowledge_search, "Search knowledge and lessons", READS)
