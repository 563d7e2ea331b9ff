"""Usage. Owns sums over the rows of the current report. Refuses to meter usage."""
