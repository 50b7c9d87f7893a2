import os

# Read once, when torch is imported. One sleeping thread: tests must not slow down beside a busy neighbour.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
