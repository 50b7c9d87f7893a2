"""`doctor`: what this installation has, and what it lacks."""

import os
import platform
import shutil
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import psutil
import typer
from rich.table import Table
from rich.text import Text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from engine.cli.options import JsonOption
from engine.cli.output import NOT_SUCCEEDED, output
from engine.errors import StoreError
from engine.jobs.folders import runs_folder
from engine.jobs.resources import available_cores, find_resources, list_gpus
from engine.jobs.workers import live_workers
from engine.store import reads
from engine.store.database import default_url, open_database

PACKAGES = ("torch", "transformers", "streamlit", "sqlalchemy")


def doctor(json: JsonOption = False) -> None:
    """Check Python, packages, device, store and worker; exit 1 if runs cannot work here."""
    with output(json) as out:
        report = examine()
        out.result(report, _table(report))
        if report["problems"]:
            raise typer.Exit(NOT_SUCCEEDED)


def examine() -> dict[str, Any]:
    """Return what was found; `problems` has a sentence for each thing that keeps runs from working."""
    packages = {name: _version(name) for name in PACKAGES}
    problems = [f"{name} is not installed; pip install {name}" for name, found in packages.items() if found is None]
    store, worker_ids = _store(problems)
    if not worker_ids:
        note = "no worker is running: start one with `make run` or `python -m engine.jobs.worker`, or use --wait"
    else:
        note = None
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "device": _device(),
        "cores": available_cores(),
        "memory_free_bytes": psutil.virtual_memory().available,
        "capacity": str(find_resources()),
        "store": store,
        "workers": worker_ids,
        "note": note,
        "problems": problems,
    }


def _store(problems: list[str]) -> tuple[dict[str, Any], list[str]]:
    url = default_url()
    try:
        db = open_database(url)
    except StoreError as error:
        problems.append(str(error))
        return {"url": _hidden(url), "ok": False}, []
    folder = runs_folder(db.url)
    exists = folder if folder.exists() else folder.parent
    if not os.access(exists, os.W_OK):
        problems.append(f"runs folder={folder} cannot be written; change its rights or set GRPO_LAB_RUNS_DIR")
    runs = reads.list_runs(db, include_archived=True)
    workers = [worker.worker_id for worker in live_workers(db, datetime.now(UTC))]
    found = {"url": _hidden(db.url), "ok": True, "runs": len(runs), "folder": str(folder)}
    return found | {"disk_free_bytes": shutil.disk_usage(exists).free if exists.exists() else None}, workers


def _device() -> str:
    gpus = list_gpus()
    if not gpus:
        return "cpu"
    return ", ".join(f"{gpu.name} ({gpu.memory_free >> 30} of {gpu.memory_total >> 30} GiB free)" for gpu in gpus)


def _version(package: str) -> str | None:
    try:
        return version(package)  # without importing it: torch takes seconds
    except PackageNotFoundError:
        return None


def _hidden(url: str) -> str:
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url


def _table(report: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in report.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {item}" for key, item in value.items())
        elif isinstance(value, list):
            value = "\n".join(value) or "none"
        if value is not None:
            table.add_row(name, Text(str(value)))
    return table
