"""`python -m benchmarks` runs all, prints one table and writes benchmarks/results.json."""

import json
from pathlib import Path

from benchmarks import floor, grading, log_prob_memory, rollout, step_time, store
from benchmarks.entry import print_table

entries = [
    entry for module in (rollout, store, grading, log_prob_memory, floor, step_time) for entry in module.measure()
]
print_table(entries)
results = Path(__file__).parent / "results.json"
results.write_text(json.dumps([entry.document() for entry in entries], indent=1) + "\n")
print(f"written to {results.relative_to(Path.cwd())}")
