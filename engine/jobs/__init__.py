"""Runs as processes: the worker that starts and watches them, and the process that is one attempt of a run.

`run` is what a child executes, `worker` what starts, watches and judges children.
"""
