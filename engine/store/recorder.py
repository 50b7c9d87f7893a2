"""The recorder: training hands it records and goes on; one thread of its own writes them in order."""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from engine.config.sections import LoggingConfig
from engine.errors import StoreError
from engine.store import reads, writes
from engine.store.database import Database
from engine.store.records import Level
from engine.types import EvaluationRecord, StepRecord

CAPACITY = 256
"""Records with completions that wait at most. 256 steps of 128 completions × 50 tokens are about 100 MB."""

SLOW_SECONDS = 2.0
"""A write that takes longer counts as an outage, even if it succeeds in the end."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


@dataclass(slots=True)
class _Item:
    """One thing to write. `light` writes it without its completions, None where it has none."""

    what: str
    write: Callable[[], None]
    light: Callable[[], None] | None
    is_step: bool = False


class Recorder:
    """Writes for one run, in the background: no call of `step`, `evaluation`, … waits for the store or raises.

    While the store is locked or unreachable, records wait and are tried again, and an event says so afterwards.
    When `capacity` records with completions wait, the oldest lose their completions; metrics are never dropped.
    A record that the store refuses for good is tried without its completions, then given up and counted in `lost`.
    """

    def __init__(
        self,
        db: Database,
        run_id: str,
        *,
        attempt_id: int | None = None,
        logging: LoggingConfig | None = None,
        capacity: int = CAPACITY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the thread. Without `logging` the stored config of the run decides what is kept.

        With `attempt_id`, writing ends when that attempt is declared over: its successor's records stand.

        Raises:
            StoreError: if there is no such run.
        """
        if logging is None:
            run = reads.get_run(db, run_id)
            if run is None:
                raise StoreError(f"run={run_id} does not exist; `grpo-lab ls` lists the runs")
            logging = run.run_config().logging
        self._db = db
        self._run_id = run_id
        self._attempt_id = attempt_id
        self._logging = logging
        self._capacity = capacity
        self._clock = clock
        self._items: deque[_Item] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._abandoned = False
        self._writing: _Item | None = None
        self._dropped = 0
        self._lost: list[str] = []
        self._down_since: float | None = None
        self._thread = threading.Thread(target=self._write_all, name=f"recorder-{run_id}", daemon=True)
        self._thread.start()

    def step(self, record: StepRecord) -> None:
        """Record a training step."""
        if not self._logging.completions:
            record = replace(record, groups=())
        bare = replace(record, groups=())

        def write(what: StepRecord) -> Callable[[], None]:
            return lambda: writes.write_step(
                self._db, self._run_id, what, token_data=self._logging.token_data, attempt_id=self._attempt_id
            )

        light = write(bare) if record.groups else None
        self._put(_Item(f"step {record.step}", write(record), light, is_step=True))

    def evaluation(self, record: EvaluationRecord) -> None:
        """Record an evaluation."""
        bare, n = replace(record, answers=()), len(record.answers)

        def write(what: EvaluationRecord) -> Callable[[], None]:
            return lambda: writes.write_evaluation(self._db, self._run_id, what, n=n, attempt_id=self._attempt_id)

        light = write(bare) if record.answers else None
        self._put(_Item(f"evaluation at step {record.step}", write(record), light))

    def event(self, kind: str, message: str, *, step: int | None = None, level: Level = "info") -> None:
        """Record an event."""
        self._put(self._event_item(kind, message, step, level))

    def checkpoint(self, step: int, path: str, accuracy: float | None = None) -> None:
        """Record that a checkpoint is whole on disk."""
        self._put(
            _Item(
                f"checkpoint at step {step}",
                lambda: writes.write_checkpoint(
                    self._db, self._run_id, step, path, accuracy, attempt_id=self._attempt_id
                ),
                None,
            )
        )

    def mark_best(self, step: int) -> None:
        """Record that the checkpoint of this step is the best."""
        self._put(_Item(f"best checkpoint {step}", lambda: writes.mark_best(self._db, self._run_id, step), None))

    def delete_checkpoints(self, steps: Collection[int]) -> None:
        """Record that the checkpoints of these steps are gone."""
        gone = list(steps)
        self._put(
            _Item(
                f"removal of checkpoints {gone}",
                lambda: writes.delete_checkpoints(self._db, self._run_id, gone),
                None,
            )
        )

    @property
    def pending(self) -> int:
        """The number of records not yet written."""
        with self._changed:
            return len(self._items)

    @property
    def lost(self) -> tuple[str, ...]:
        """What was given up, and why: one line each."""
        with self._changed:
            return tuple(self._lost)

    def flush(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds; return True when every record so far is stored and none was lost."""
        with self._changed:
            self._changed.wait_for(lambda: not self._items, timeout)
            return not self._items and not self._lost

    def close(self, timeout: float = 30.0) -> bool:
        """Flush, then end the thread; return what `flush` returned. What is then unwritten is given up."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        whole = self.flush(timeout)
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()
        if not self._items:
            self._thread.join(timeout=5.0)
        return whole

    def _put(self, item: _Item) -> None:
        with self._changed:
            self._items.append(item)
            heavy = [waiting for waiting in self._items if waiting.light and waiting is not self._writing]
            if len(heavy) > self._capacity:
                oldest = next((waiting for waiting in heavy if waiting.is_step), heavy[0])
                assert oldest.light is not None
                oldest.write, oldest.light = oldest.light, None
                self._dropped += 1
            self._changed.notify_all()

    def _event_item(self, kind: str, message: str, step: int | None, level: Level) -> _Item:
        at = datetime.now(UTC)
        return _Item(
            f"event {kind}",
            lambda: writes.write_event(self._db, self._run_id, kind, message, step=step, level=level, at=at),
            None,
        )

    def _write_all(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._items) or self._closing)
                if self._abandoned or not self._items:
                    return
                item = self._writing = self._items[0]
                write = item.write
            began = self._clock()
            refusal: Exception | None = None
            try:
                write()
            except SQLAlchemyError as error:
                if _may_pass(error):
                    with self._changed:
                        self._writing = None
                        if self._down_since is None:
                            self._down_since = began
                        self._changed.wait_for(lambda: self._abandoned, pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                    continue
                refusal = error
            except Exception as error:  # a fault of one record must not end the thread that writes all others
                refusal = error
            pause = _FIRST_PAUSE
            with self._changed:
                self._finish(item, began, refusal)

    def _finish(self, item: _Item, began: float, refusal: Exception | None) -> None:
        """Take the written item off, and put before the others what there is to say about it."""
        self._writing = None
        news: list[_Item] = []
        if refusal is not None and item.light is not None:
            item.write, item.light = item.light, None
            self._lost.append(f"completions of {item.what}: {_line(refusal)}")
            self._items.insert(1, self._refusal_event(item, refusal, "stored without its completions"))
            return
        self._items.popleft()
        if refusal is not None:
            self._lost.append(f"{item.what}: {_line(refusal)}")
            if not item.what.startswith("event"):
                news.append(self._refusal_event(item, refusal, "not stored"))
        elif self._down_since is not None or self._clock() - began > SLOW_SECONDS:
            news.append(self._outage_event(item, self._down_since if self._down_since is not None else began))
            self._down_since = None
        if self._dropped and self._down_since is None:
            message = f"the store could not keep up; the completions of {self._dropped} records were dropped"
            news.append(self._event_item("completions_dropped", message, None, "warning"))
            self._dropped = 0
        self._items.extendleft(reversed(news))
        self._changed.notify_all()

    def _outage_event(self, item: _Item, since: float) -> _Item:
        late = sum(waiting.is_step for waiting in (item, *self._items))
        steps = f"{late} step{'' if late == 1 else 's'}"
        message = f"store was unreachable for {self._clock() - since:.0f} s; {steps} written late"
        return self._event_item("store_unreachable", message, None, "warning")

    def _refusal_event(self, item: _Item, refusal: Exception, result: str) -> _Item:
        return self._event_item("store_refused", f"{item.what} {result}: {_line(refusal)}", None, "error")


def _may_pass(error: SQLAlchemyError) -> bool:
    """Whether trying again can help: locked, disk full, server gone; not a wrong value or a missing row."""
    if isinstance(error, IntegrityError | DataError | ProgrammingError | NotSupportedError):
        return False
    return isinstance(error, DBAPIError | NoConnectionError)


def _line(error: Exception) -> str:
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__}: {cause}".splitlines()[0][:500]
