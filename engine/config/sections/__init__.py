"""The sections of a RunConfig: each field with its default, range, unit and one sentence."""

from engine.config.sections.algorithm import EntropyConfig, GrpoConfig, KlConfig, LearnFrom
from engine.config.sections.model import LoraConfig, ModelConfig
from engine.config.sections.optimizer import OptimizerConfig
from engine.config.sections.reward import Placebo, RewardConfig
from engine.config.sections.rollout import RolloutConfig, TruncatedCompletions, TruncationConfig
from engine.config.sections.section import Section, about
from engine.config.sections.sft import SftConfig, SftLoss
from engine.config.sections.task import PromptConfig, TaskConfig
from engine.config.sections.upkeep import CheckpointConfig, EvaluationConfig, LoggingConfig, StoppingConfig
from engine.config.sections.vllm import VllmConfig

__all__ = [
    "CheckpointConfig",
    "EntropyConfig",
    "EvaluationConfig",
    "GrpoConfig",
    "KlConfig",
    "LearnFrom",
    "LoggingConfig",
    "LoraConfig",
    "ModelConfig",
    "OptimizerConfig",
    "Placebo",
    "PromptConfig",
    "RewardConfig",
    "RolloutConfig",
    "Section",
    "SftConfig",
    "SftLoss",
    "StoppingConfig",
    "TaskConfig",
    "TruncatedCompletions",
    "TruncationConfig",
    "VllmConfig",
    "about",
]
