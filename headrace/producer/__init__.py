"""Writing: records gather into batches, and batches go to nodes in order, once."""
