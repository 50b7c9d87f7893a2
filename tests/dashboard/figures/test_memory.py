from dashboard.figures.memory import PARTS, memory_figure
from engine.config import RunConfig, parse_config
from engine.planner import GIB, MIB, MemoryPlan, Part, find_shape, plan_memory

BOTH = ("rollout", "update")
PLAN = MemoryPlan(
    (
        Part("weights", 30 * MIB, BOTH, "30 parameters × 1 MiB."),
        Part("cache", 10 * MIB, ("rollout",), "Ten."),
        Part("activations", 50 * MIB, ("update",), "Fifty <b> of them."),
    ),
    prompt_tokens=5,
)


def test_each_part_is_a_bar_in_the_phases_it_is_in() -> None:
    figure = memory_figure(PLAN, 100 * MIB)
    bars = {bar.uid: (bar.x, bar.y) for bar in figure.data}
    assert bars == {
        "weights": ((30.0, 30.0), ("Rollout", "Update")),
        "cache": ((10.0,), ("Rollout",)),
        "activations": ((50.0,), ("Update",)),
    }
    notes = {note.name: note.text for note in figure.layout.annotations}
    assert notes["total:rollout"] == "Rollout: 40 MiB"
    assert notes["total:update"] == "Update: 80 MiB"


def test_pointing_at_a_part_gives_its_formula_as_it_is() -> None:
    texts = {bar.uid: bar.hovertemplate for bar in memory_figure(PLAN, GIB).data}
    assert texts["weights"] == "<b>Weights: 30 MiB</b><br>30 parameters × 1 MiB.<extra></extra>"
    assert "Fifty &lt;b&gt; of them." in texts["activations"]


def test_the_device_is_drawn_where_it_is_near() -> None:
    near, far = memory_figure(PLAN, 100 * MIB), memory_figure(PLAN, GIB)
    assert [shape.x0 for shape in near.layout.shapes] == [100.0]
    assert near.layout.xaxis.range[1] > 100
    assert not far.layout.shapes
    assert far.layout.xaxis.range[1] < 100


def test_large_plans_are_drawn_in_gib() -> None:
    figure = memory_figure(MemoryPlan((Part("weights", 3 * GIB, BOTH, "."),), 5), GIB)
    assert figure.data[0].x == (3.0, 3.0)
    assert figure.layout.xaxis.ticksuffix == " GiB"


def test_every_part_that_the_planner_names_has_a_title_and_a_colour_of_its_own() -> None:
    shape = find_shape("tiny-math")
    assert shape is not None
    configs = (
        RunConfig(),
        parse_config({"lora.rank": 4, "kl.beta": 0.1, "model.gradient_checkpointing": True}),
        parse_config({"max_tokens": 400, "evaluation.size": 2}),
        parse_config({"rollout.engine": "vllm", "vllm.enforce_eager": False}),
    )
    names = {part.name for config in configs for part in plan_memory(config, shape, device_bytes=24 * GIB).parts}
    assert names == PARTS.keys()
    assert len({colour for _, colour in PARTS.values()}) == len(PARTS)
