"""The chosen model: how large it is, how it is built, whether its weights are here; the details are folded."""

from collections.abc import Iterator

import streamlit as st

from dashboard.components.draft import Draft
from dashboard.components.form import problem_lines
from dashboard.components.markdown import escape_markdown
from engine.config import RunConfig
from engine.planner import CATALOGUE, ModelShape, Presence, find_presence, find_shape, size, weight_bytes

WORDS = {
    "here": ":green[:material/check: here]",
    "to_make": ":orange[:material/build: made by the first run]",
    "to_download": ":orange[:material/download: downloaded by the run]",
    "missing": ":red[:material/error: not here]",
}
_HELP = "The model that `model.name` names. Whether its weights are here was looked up on the machine of this page."


def model_card(draft: Draft) -> None:
    """Draw the card; nothing while the form holds no config."""
    config = draft.checked.config
    if config is None:
        return
    shape = find_shape(config.model.name)
    begins = _begins_with(draft, config)
    # Weights of a checkpoint take the place of the model's own, unless an adapter stands beside these.
    presence = find_presence(config.model.name) if begins is None or config.lora.rank is not None else None
    with st.container(border=True, gap="xsmall", key="model_card"):
        st.markdown(", ".join(_line(config, shape, presence, begins)), help=_HELP)
        if presence is not None and presence.state == "missing":
            problem_lines([f"On this machine: {presence.sentence}"])
        fold = st.expander("Details", key="model_fold", type="compact", on_change="rerun")
        if fold.open:
            with fold:
                _details(config, shape, presence)


def parameters_text(number: int) -> str:
    """Return a number of parameters in three digits: `824 k`, `135 M`, `1.54 B`."""
    for unit, name in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if number >= 0.9995 * unit:
            scaled = number / unit
            return f"{scaled:.{2 if scaled < 9.995 else 1 if scaled < 99.95 else 0}f} {name}"
    return str(number)


def _line(config: RunConfig, shape: ModelShape | None, presence: Presence | None, begins: str | None) -> Iterator[str]:
    known = CATALOGUE.get(config.model.name)
    yield f"**Model:** {escape_markdown(known.title if known else config.model.name)}"
    if shape is not None:
        yield f"{parameters_text(shape.parameters)} parameters"
        yield f"{size(weight_bytes(shape, config.model.dtype))} in {config.model.dtype}"
    if begins is not None:
        yield f"weights of {escape_markdown(begins)}"
    if presence is not None:
        yield WORDS[presence.state]


def _begins_with(draft: Draft, config: RunConfig) -> str | None:
    """Return the checkpoint or folder whose weights the run begins with; None where they are the model's own."""
    if draft.parent is not None:
        return f"{draft.parent_name}@{draft.parent[1]}"
    return config.model.init_from


def _details(config: RunConfig, shape: ModelShape | None, presence: Presence | None) -> None:
    if shape is None:
        st.caption(_UNKNOWN)
    else:
        grid = st.grid(min_column_width=105, key="model_grid")
        for label, value, meaning in _facts(shape, config.model.dtype):
            with grid.cell():
                st.markdown(f":small[{label}]  \n**{value}**", help=meaning)
    known = CATALOGUE.get(config.model.name)
    said = [f"Source: {known.source}.", f"Licence: {known.licence}."] if known else [_OTHER]
    if presence is not None:
        said.append(presence.sentence)
    st.caption("\n".join(f"- {escape_markdown(sentence)}" for sentence in said))


def _facts(shape: ModelShape, dtype: str) -> tuple[tuple[str, str, str], ...]:
    """Return label, value and meaning of each number."""
    heads = f"{shape.heads:,}" if shape.heads == shape.kv_heads else f"{shape.heads:,} / {shape.kv_heads:,}"
    output = "its rows are the output layer's as well" if shape.tied else "the output layer has as many rows of its own"
    return (
        ("Parameters", f"{shape.parameters:,}", "Weights, an output layer tied to the embedding counted once"),
        ("Weights", size(weight_bytes(shape, dtype)), f"Parameters × bytes of a number in {dtype} (model.dtype)"),
        ("Vocabulary", f"{shape.vocabulary:,}", f"Rows of the embedding, in tokens; {output}"),
        ("Context", f"{shape.positions:,}", "Longest sequence, prompt and completion together, in tokens"),
        ("Layers", f"{shape.layers:,}", "Decoder layers, one behind the other"),
        ("Width", f"{shape.hidden:,}", "Numbers that a token is between two layers (hidden size)"),
        ("Heads", heads, "Heads of attention in a layer / those of keys and values, where several share one"),
        ("Head size", f"{shape.head_dim:,}", "Numbers in one head"),
        ("MLP width", f"{shape.intermediate:,}", "Numbers inside the gated MLP of a layer (intermediate size)"),
    )


_OTHER = "Source and licence: as its publisher says."
_UNKNOWN = (
    "Its config.json is neither in a local folder nor in the local Hugging Face cache, or it is not of the Qwen2, "
    "Qwen3, Llama or Mistral kind."
)
