"""What an attempt says before its first step: by what it is graded, and what was found in its data."""

from engine.config import RunConfig
from engine.rewards.identity import headline_of, reward_identity
from engine.store.recorder import Recorder
from engine.tasks.preview import data_sentences
from engine.training.setup import Setup

IDS_NAMED = 20


def announce(setup: Setup, config: RunConfig, recorder: Recorder, graded_before: str | None) -> None:
    """Record the events "grader" and "data"; a warning where an earlier attempt was graded in another way.

    `graded_before` is the message of that attempt's event "grader".
    """
    grader, step = reward_identity(setup.prompt.reward, setup.reward), setup.state.step
    recorder.event("grader", grader.message, step=step)
    if graded_before is not None and headline_of(graded_before) != grader.headline:
        recorder.event(
            "grader_changed",
            f"graded by {grader.headline} from step {step + 1} on, before by {headline_of(graded_before)}: rewards and "
            "accuracies on either side are of two graders; grade the run again (tab Regrade) to compare them",
            step=step,
            level="warning",
        )
    sentences = data_words(setup, config)
    if sentences:
        recorder.event("data", " ".join(sentences), step=step)


def data_words(setup: Setup, config: RunConfig) -> list[str]:
    """Return what there is to say of the data of a run, a sentence each."""
    said = list(data_sentences(setup.task, config))
    ids = [fault.problem.problem_id for fault in setup.gold_faults]
    if ids:
        more = f" and {len(ids) - IDS_NAMED} more" if len(ids) > IDS_NAMED else ""
        said.append(
            f"{len(ids)} problems are left out, since their gold answers do not grade themselves correct: "
            f"{', '.join(ids[:IDS_NAMED])}{more}."
        )
    if len(setup.held_out) < config.evaluation.size:
        said.append(
            f"{len(setup.held_out)} problems are evaluated: the split {config.evaluation.split} has no more "
            f"(evaluation.size={config.evaluation.size})."
        )
    return said
