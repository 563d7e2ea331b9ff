"""Usage. Owns sums over the rows of the report that is shown. Refuses to meter."""
