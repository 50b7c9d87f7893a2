"""RunConfig and what is made from it: parsing, rules, the list of fields, differences."""

from engine.config.evaluation import evaluation_config, evaluation_problems
from engine.config.fields import Field, FieldKind, fields
from engine.config.fork import fork_problems
from engine.config.parse import canonical_path, merge, nest, parse_assignment, parse_config, to_yaml
from engine.config.remarks import remarks
from engine.config.run_config import RunConfig, diff, leaves
from engine.config.sections import Section

__all__ = [
    "Field",
    "FieldKind",
    "RunConfig",
    "Section",
    "canonical_path",
    "diff",
    "evaluation_config",
    "evaluation_problems",
    "fields",
    "fork_problems",
    "leaves",
    "merge",
    "nest",
    "parse_assignment",
    "parse_config",
    "remarks",
    "to_yaml",
]
