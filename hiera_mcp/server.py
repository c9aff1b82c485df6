"""The server object: tools, resources and prompts joined to what they need. No logic."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from mcp.server.caching import CacheHint

from hiera_mcp import __version__, resources, tools
from hiera_mcp.deps import Deps
from hiera_mcp.protocol.strict import StrictServer

INSTRUCTIONS = """\
hiera_mcp optimises GPU and CPU kernels by the HIERA method. You choose and write; the server gives evidence, compiles, \
verifies, times and remembers. Its measurements are the only ones that count.

Start: use the prompt optimize_kernel, or call hiera_guide() if your client has no prompts. The loop is
hiera_contract_build -> hiera_run_start -> each round: hiera_plan_space, hiera_plan_direction, hiera_plan_strategy, \
then hiera_candidates_evaluate -> hiera_run_finish.
Every result has a next_step that names the next call with its ids: follow it. If you lost track, \
hiera_run_status(run_id) says where the run stands.

You write one source file against contract.h (in the PyTorch space also model_new.py); everything else is fixed. \
Compile early with hiera_candidate_check; submit several candidates in one hiera_candidates_evaluate.
Long calls return a job_id after wait_s seconds: call hiera_job(job_id) and do not submit the work twice.
A candidate that fails is a result with a status and a reason, not an error. Large things are hiera:// resources; \
hiera_artifact_read reads them by page."""


def create_server(open_deps: Callable[[], AbstractAsyncContextManager[Deps]]) -> StrictServer:
    """The MCP server with all tools, resources and prompts.

    `open_deps` is entered when serving starts and left when it ends, whatever the transport.
    """
    server = StrictServer(
        name="hiera-mcp",
        title="HIERA kernel optimisation",
        instructions=INSTRUCTIONS,
        version=__version__,
        lifespan=lambda _: open_deps(),
        cache_hints={"tools/list": CacheHint(ttl_ms=60_000, scope="public")},
        log_level="WARNING",
    )
    for tool in tools.ALL:
        server.add_tool(tool.run, tool.name, tool.title, tool.description, tool.annotations)
    for resource in resources.ALL:
        resource.register(server)
    for prompt in resources.PROMPTS:
        server.add_prompt(prompt)
    server.add_completion(resources.complete)
    return server
