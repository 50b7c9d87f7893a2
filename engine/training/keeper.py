"""Keeps a run's checkpoints: when the disk is full, the last k, and the best by validation."""

from pathlib import Path

from engine.config.sections import CheckpointConfig
from engine.store.recorder import Recorder
from engine.training.checkpoint import best_checkpoint, prune_checkpoints, save_checkpoint, step_of
from engine.training.in_hand import StepInHand
from engine.training.setup import Setup
from engine.training.state import TrainingState

FLUSH_SECONDS = 5.0


class CheckpointKeeper:
    """Saves checkpoints and tells the store; a failed save is an event, never the end of the run."""

    def __init__(self, folder: Path, setup: Setup, config: CheckpointConfig, recorder: Recorder) -> None:
        self._folder, self._setup, self._config, self._recorder = folder, setup, config, recorder
        self._saved_step: int | None = None

    def save(self, state: TrainingState) -> None:
        """Save `state`, unless that step was just saved.

        The store gets everything up to this step first, so that a resume from the checkpoint leaves no gap.
        """
        if state.step == self._saved_step:
            return
        self._recorder.flush(FLUSH_SECONDS)
        try:
            path = self._write(state, None)
        except OSError as error:
            self._recorder.event(
                "checkpoint_failed",
                f"the checkpoint of step {state.step} could not be written: {error}; the run goes on, "
                f"and resumes from {'step ' + str(self._saved_step) if self._saved_step else 'the one before'}",
                step=state.step,
                level="error",
            )
            return
        self._saved_step = state.step
        self._recorder.checkpoint(state.step, str(path), state.accuracy)
        deleted = prune_checkpoints(self._folder, keep=self._config.keep)
        if deleted:
            self._recorder.delete_checkpoints(deleted)
        best = best_checkpoint(self._folder)
        if best is not None:
            self._recorder.mark_best(step_of(best))

    def save_within(self, state: TrainingState, in_hand: StepInHand) -> None:
        """Save what a stop inside the step after `state` leaves; the checkpoints before it stay."""
        self._recorder.flush(FLUSH_SECONDS)
        try:
            self._write(state, in_hand)
        except OSError as error:
            self._recorder.event(
                "checkpoint_failed",
                f"step {state.step + 1} was stopped inside and could not be kept: {error}; a resume goes on from the "
                "last checkpoint",
                step=state.step,
                level="error",
            )

    def _write(self, state: TrainingState, in_hand: StepInHand | None) -> Path:
        setup = self._setup
        return save_checkpoint(
            self._folder, setup.policy, setup.optimizer.optimizer, state, reference=setup.reference, in_hand=in_hand
        )
