"""Live consumer groups of this node.

Owns live sessions, the assignments sent to them, and the handover of partitions. Refuses to decide
assignments: `dataplane.groups` does.
"""
