"""Code of others may take so much processor time, and then stops, whatever it catches."""

import signal
import time

import pytest

from hiera_mcp.sandbox.child.processor_time import OutOfTime, at_most


def spin(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_what_takes_less_is_not_disturbed_later_either():
    with at_most(0.2):
        spin(0.01)
    spin(0.25)


def test_what_takes_more_is_ended():
    start = time.process_time()
    with pytest.raises(OutOfTime), at_most(0.05):
        spin(10)
    assert time.process_time() - start < 5


def test_code_that_catches_every_exception_is_ended_as_well():
    def stubborn() -> None:
        try:
            spin(10)
        except Exception:  # noqa: BLE001 - this is what must not help
            spin(10)

    with pytest.raises(OutOfTime), at_most(0.05):
        stubborn()


def test_waiting_takes_no_processor_time():
    with at_most(0.05):
        time.sleep(0.2)


def test_the_handler_of_before_is_back():
    before = signal.getsignal(signal.SIGPROF)
    with pytest.raises(OutOfTime), at_most(0.01):
        spin(10)
    assert signal.getsignal(signal.SIGPROF) is before
