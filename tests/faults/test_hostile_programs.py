"""After each attack on the host's resources the next box works and nothing is left."""

import json
from typing import Any

import pytest

ATTACKS = {
    "fork bomb": ("f(){ f|f& sleep 30; };f", {"process_limit"}),
    "fork bomb that may burn out between two looks": ("f(){ f|f& };f; sleep 0.5", {"process_limit", "exit"}),
    "thread of daemons": ("while :; do (setsid sleep 64 &) ; done", {"process_limit"}),
    "output flood": ("yes flood", {"output_limit"}),
    "many files": ("i=0; while :; do head -c 1M /dev/zero > f$i; i=$((i+1)); done", {"disk_limit"}),
    "many empty files": ("i=0; while :; do i=$((i+1)); : > empty$i; done", {"disk_limit"}),
    "deep folders": (
        f"p=$(printf {'d' * 100}/%.0s $(seq 20)); while mkdir -p $p && cd $p; do :; done; sleep 30",
        {"disk_limit"},
    ),
    "a folder that nobody may read": (
        "mkdir d; head -c 1K /dev/zero > d/f; chmod 000 d; sleep 0.5",
        {"exit", "disk_limit"},
    ),
    "stops itself": ("kill -STOP $$", {"timeout"}),
    "kills everything": ("trap '' TERM; kill -9 -1; sleep 30", {"timeout", "signal", "exit"}),
}
SCRIPT = """
async def main():
    import dataclasses
    limits = BoxLimits(memory_bytes=512 << 20, disk_bytes=4 << 20, processes=40, output_bytes=1 << 20)
    attack = dataclasses.replace(spec({attack!r}), limits=limits)
    first = await run(Backend(), attack, 20 if {long} else 1)
    from hiera_mcp.sandbox.isolation.folders import discard
    for entry in Path(sys.argv[1]).iterdir():
        discard(entry)
    second = await run(Backend(), spec("echo works"), 20)
    import json
    print(json.dumps([first.ended, second.output]))
asyncio.run(main())
"""


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_with_its_name_and_the_next_box_works(spawner: Any, request: Any, name: Any):
    attack, endings = ATTACKS[name]
    if name == "kills everything" and "unsafe" in request.node.name:
        pytest.skip("without isolation a box may kill whatever its user may kill")
    long = "timeout" not in endings
    out, _ = spawner.start(SCRIPT.format(attack=attack, long=long)).communicate(timeout=60)
    ended, output = json.loads(out)
    assert ended in endings
    assert output == "works\n"
    assert spawner.running() == []
