"""What the run will need of memory against what a device has; the details are folded."""

from collections.abc import Iterable
from typing import Literal

import streamlit as st

from dashboard.components.draft import Draft, field_at
from dashboard.components.entry import number_text
from dashboard.components.form import label_of
from dashboard.components.markdown import escape_markdown
from dashboard.components.plot import plot, plot_library
from dashboard.data.device import known_memory
from dashboard.data.outlook import Outlook, outlook
from dashboard.figures.memory import PARTS, PHASE_NAMES, memory_figure
from engine.config import RunConfig
from engine.planner import GIB, Fit, Part, Remedy, SamplerRoom, find_shape, size, usual_prompt_tokens
from engine.store.database import Database

CARDS = (16, 24, 40, 48, 80, 141)
WORDS: dict[Fit, str] = {
    "fits": ":green[:material/check: fits]",
    "tight": ":orange[:material/warning: tight]",
    "too_large": ":red[:material/error: too large]",
    "no_room": ":red[:material/error: no room for vLLM to start]",
}
_CHOSEN = "memory_device"
_PROMPT = "memory_prompt"
_HERE = "here"
_USUAL = "24"


def memory_card(db: Database, draft: Draft) -> None:
    """Draw the card; nothing while the form holds no config."""
    config = draft.checked.config
    if config is None:
        return
    shape = find_shape(config.model.name)
    with st.container(border=True, gap="xsmall", key="memory_card"):
        if shape is None:
            st.markdown("**Memory:** not known for this model")
            st.caption(_UNKNOWN)
            return
        here = known_memory(db, config)
        chosen = _chosen(here)
        device_bytes = here if chosen == _HERE and here is not None else int(chosen) * GIB
        there = _on(config, "cpu" if chosen == _HERE else "cuda")
        found = outlook(there, shape, device_bytes, _prompt_tokens(config))
        st.markdown(f"**Memory:** about {size(found.plan.peak)} of {size(device_bytes)}, {WORDS[found.fit]}")
        fold = st.expander("Details", key="memory_fold", type="compact", on_change="rerun")
        if fold.open:
            with fold:
                _details(config, found, device_bytes, here)


def _details(config: RunConfig, found: Outlook, device_bytes: int, here: int | None) -> None:
    grid = st.grid(min_column_width=150, key="memory_grid")
    with grid.cell():
        _device_box(here)
    with grid.cell():
        _prompt_box(config)
    if found.fit != "fits":
        _remedies(config, found)
    plot_library()
    plot("memory", (found.plan, device_bytes), lambda: memory_figure(found.plan, device_bytes))
    if found.plan.sampler is not None:
        st.caption(sampler_line(found.plan.sampler))
    st.caption(
        "Every completion taken to be as long as it may get. What the libraries take comes on top: about 0.5 GiB, "
        "more with a CUDA context."
    )
    with st.popover("How it is computed", type="tertiary"):
        st.markdown("\n".join(f"- {_line(part)}" for part in found.plan.parts))


def _remedies(config: RunConfig, found: Outlook) -> None:
    if found.alone:
        st.markdown("It fits with any one of these changes, the mildest first:")
        _lines(config, found.alone)
    elif found.together and found.together[-1].fit == "fits":
        st.markdown("It fits with all of these changes, the mildest first:")
        _lines(config, found.together)
    else:
        left = f" All of these leave it at {size(found.together[-1].peak)}:" if found.together else ""
        st.markdown(f"It needs a smaller model, shorter completions or a larger device.{left}")
        _lines(config, found.together)


def _lines(config: RunConfig, remedies: Iterable[Remedy]) -> None:
    st.markdown("\n".join(f"- {remedy_line(config, remedy)}" for remedy in remedies))


def remedy_line(config: RunConfig, remedy: Remedy) -> str:
    """Return a change in words: the field, from what to what, what it saves, and the peak after it."""
    section, _, key = remedy.path.partition(".")
    before, after = _shown(getattr(getattr(config, section), key)), _shown(remedy.value)
    label = label_of(field_at(remedy.path))
    gain = f"saves {size(remedy.saves)}" if remedy.saves > 0 else "gives vLLM room to start"
    return f"{label} **{before} → {after}**: {gain}, leaves {size(remedy.peak)}"


def sampler_line(room: SamplerRoom) -> str:
    """Return what vLLM's room for keys and values holds."""
    if not room.starts:
        return (
            f"vLLM has {size(max(room.cache, 0))} left for keys and values, and starts only where one sequence of its "
            f"longest has room: {size(room.longest)}."
        )
    waves = f", so {room.rows:,} of a step come in {room.waves:,} waves" if room.waves > 1 else ""
    return (
        f"vLLM has {size(room.cache)} for keys and values: room for {room.at_once:,} sequences at once, all as long as "
        f"they may get{waves}. What vLLM takes on a GPU is on paper and has not been measured."
    )


def _line(part: Part) -> str:
    phases = " and ".join(PHASE_NAMES[phase].lower() for phase in part.phases)
    return f"**{PARTS[part.name][0]}**, {size(part.bytes)} ({phases}): {escape_markdown(part.sentence)}"


def _chosen(here: int | None) -> str:
    """Return the device that counts: the one chosen, else this machine where the run can only go there."""
    options = _options(here)
    chosen = str(st.session_state.get(_CHOSEN, options[0]))
    return chosen if chosen in options else options[0]


def _options(here: int | None) -> list[str]:
    cards = [str(card) for card in CARDS]
    return [_HERE, *cards] if here is not None else [_USUAL, *(card for card in cards if card != _USUAL)]


def _device_box(here: int | None) -> None:
    options = sorted(_options(here), key=lambda option: 0 if option == _HERE else int(option))
    key = f"{_CHOSEN}_box"
    st.session_state[key] = _chosen(here)
    st.selectbox(
        "Device",
        options,
        key=key,
        format_func=lambda option: f"This machine, {size(here or 0)}" if option == _HERE else f"GPU with {option} GB",
        on_change=_keep,
        args=(_CHOSEN,),
        help="No worker reports the memory of its GPUs; choose what the run will have."
        if here is None
        else "The run goes to the CPU of this machine. Choose a GPU to see whether it would fit there.",
    )


def _prompt_box(config: RunConfig) -> None:
    key = f"{_PROMPT}_box"
    st.session_state[key] = _prompt_tokens(config)
    st.number_input(
        "Longest prompt",
        1,
        1_000_000,
        key=key,
        on_change=_keep,
        args=(_PROMPT,),
        help="In tokens. The settings do not tell how long prompts are.",
    )


def _on(config: RunConfig, device: Literal["cpu", "cuda"]) -> RunConfig:
    """Return the config for this device, not checked: what is wrong on it is said beside the launch button."""
    return config.model_copy(update={"model": config.model.model_copy(update={"device": device})})


def _prompt_tokens(config: RunConfig) -> int:
    return int(st.session_state.get(_PROMPT, usual_prompt_tokens(config)))


def _keep(name: str) -> None:
    """Keep a choice beyond its widget, which Streamlit forgets with the fold or the page."""
    st.session_state[name] = st.session_state[f"{name}_box"]


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return number_text(value)
    return "empty" if value is None else escape_markdown(str(value))


_UNKNOWN = (
    "The planner reads a model's config.json: from a local folder, or from the local Hugging Face cache once the model "
    "has been downloaded. It knows models of the Qwen2, Qwen3, Llama and Mistral kind."
)
