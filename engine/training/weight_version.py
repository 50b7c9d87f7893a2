"""Which weights sampled a rollout batch: held against the trainer's before it is trained on."""

from engine.errors import GrpoLabError
from engine.rollout.protocol import RolloutEngine


class StaleWeightsError(GrpoLabError):
    """Completions came from other weights than the trainer's."""


def check_weight_version(engine: RolloutEngine, changes: int) -> None:
    """Check that the last completions were sampled with the trainer's weights, those after `changes` optimizer steps.

    Raises:
        StaleWeightsError: if they were not.
    """
    if engine.weight_version != changes:
        raise StaleWeightsError(
            f"the sampler's weights are those after {engine.weight_version} optimizer steps, the trainer's those after "
            f"{changes}: its completions are not the policy's, and the run ends before it is trained on them; resume "
            "it, which starts the sampler anew, or choose rollout.engine=transformers, and report this fault"
        )
