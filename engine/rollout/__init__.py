"""Sampling: prompts in as token ids, completions out as token ids with log-probs and a finish reason."""
