"""Short reads are done at once, unless somebody is using the store."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiera_mcp.database import Database
from hiera_mcp.store import Store


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "hiera.db", tmp_path / "blobs")
    yield store
    store.close()


def lessons_and_thread(store: Store) -> tuple[int, int]:
    return len(store.lessons()), threading.get_ident()


async def test_a_glance_at_a_free_store_takes_no_thread(opened: Store) -> None:
    assert await Database(opened).glance(lessons_and_thread) == (0, threading.get_ident())


async def test_a_glance_waits_in_a_thread_while_another_one_writes(opened: Store) -> None:
    writing, done = threading.Event(), threading.Event()

    def write() -> None:
        with opened.write() as tx:
            tx.log("test", {}, None)
            writing.set()
            done.wait(10)

    writer = threading.Thread(target=write)
    writer.start()
    assert writing.wait(10)
    threading.Timer(0.05, done.set).start()
    _, thread = await Database(opened).glance(lessons_and_thread)
    writer.join()
    assert thread != threading.get_ident()
    assert any(event.kind == "test" for event in opened.events())


async def test_a_failing_glance_leaves_the_store_free(opened: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        await Database(opened).glance(lambda _: 1 // 0)
    assert await Database(opened).glance(lessons_and_thread) == (0, threading.get_ident())
