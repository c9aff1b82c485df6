"""A box never outlives the process that started it, however that process ends."""

import os
import signal
from typing import Any

HANG = '(setsid sh -c "sleep 63; sleep 63" &); sleep 62'


def test_killing_the_spawner_kills_its_boxes(spawner: Any):
    process = spawner.start(f"asyncio.run(run(Backend(), spec({HANG!r}), 60))")
    assert spawner.wait_until(lambda: len(spawner.running()) >= 3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert spawner.wait_until(lambda: not spawner.running())


def test_closing_the_event_loop_without_waiting_kills_the_box(spawner: Any):
    script = f"""
async def main():
    await start(Backend(), spec({HANG!r}))
    await asyncio.sleep(0.5)
asyncio.run(main())
print("closed")
"""
    out, _ = spawner.start(script).communicate(timeout=30)
    assert out == "closed\n"
    assert spawner.running() == []


def test_an_interrupt_kills_the_box(spawner: Any):
    process = spawner.start(f"asyncio.run(run(Backend(), spec({HANG!r}), 60))")
    assert spawner.wait_until(lambda: len(spawner.running()) >= 3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert spawner.wait_until(lambda: not spawner.running())


def test_a_work_folder_that_vanishes_does_not_leave_the_box_alone(spawner: Any):
    script = f"""
import shutil
async def main():
    box = await start(Backend(), spec({HANG!r}))
    await asyncio.sleep(0.3)
    shutil.rmtree(sys.argv[1])
    print((await box.wait(0.5)).ended)
asyncio.run(main())
"""
    out, _ = spawner.start(script).communicate(timeout=30)
    os.makedirs(spawner._work, exist_ok=True)
    assert out == "timeout\n"
    assert spawner.running() == []
