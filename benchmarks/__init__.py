"""Measured claims: each a ratio to a peer or a floor, taken in one process."""
