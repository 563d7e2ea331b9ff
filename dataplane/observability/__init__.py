"""The state of a node for operators: metrics, log lines, health and status.

Reads every other room. Refuses to act.
"""
