"""One file per page: it picks, loads, frames, draws and shows."""
