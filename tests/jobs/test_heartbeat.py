import time
from datetime import UTC, datetime

from engine.jobs.heartbeat import Heartbeat


def test_it_beats_at_once_and_goes_on_after_faults_of_the_store() -> None:
    beats: list[datetime] = []
    said: list[str] = []

    def beat(now: datetime) -> None:
        beats.append(now)
        if len(beats) in (2, 3):
            raise OSError("database is locked")

    heartbeat = Heartbeat(beat, every=0.01, complain=said.append).start()
    deadline = time.monotonic() + 5
    while len(beats) < 5 and time.monotonic() < deadline:
        time.sleep(0.005)
    heartbeat.close()
    counted = len(beats)
    time.sleep(0.05)
    assert counted >= 5
    assert len(beats) == counted
    assert beats[0].tzinfo is UTC
    assert said == ["heartbeat failed, trying on: OSError: database is locked", "heartbeat is back after 0 s"]
