"""The maths of GRPO: arrays and numbers in, arrays and small named tuples out.

Everything but `log_probs` is written over the array API, so that the trainer passes torch tensors, the
inspector passes numpy arrays, and both run the same code. Nothing is imported here: a process that
replays an advantage must not load torch.

Axes: P prompts, G completions of one prompt, B = P·G rows, T tokens, V vocabulary.
"""
