"""Statistics of evaluations: numbers in, numbers out; no config, store or model."""
