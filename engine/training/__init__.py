"""Training: the loop, and the steps it is made of."""
