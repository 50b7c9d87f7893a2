"""How a completion is judged: the answer is found, compared with the gold answer, and given a value."""
