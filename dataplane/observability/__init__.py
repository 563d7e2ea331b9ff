"""What operators see of a node: metrics, log lines, health and status.

Reads every other room. Refuses to act.
"""
