import os

from hypothesis import settings

# Read once, when torch is imported. One sleeping thread: tests must not slow down beside a busy neighbour.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Nothing is timed: what takes 10 ms alone may take a second beside others.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
