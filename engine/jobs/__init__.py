"""Runs as processes: a worker that starts and watches them, and the process that is one attempt of a run."""
