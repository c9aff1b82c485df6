"""A workshop on the real executor, shared by tests/exploits and tests/honest: tasks in tests/tasks, one warm judge."""

import shutil
from collections.abc import Iterator

import pytest
from anyio.from_thread import start_blocking_portal
from host_rates import with_host_rates
from workshops import Workshop


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    for tool in ("g++", "bwrap"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    with start_blocking_portal("asyncio") as portal:
        made = Workshop(portal, with_host_rates(tmp_path_factory.mktemp("compiled")))
        yield made
        made.close()
