"""Actions over two logs, in repeatable steps: deletions, legal holds, purges.

Owns the steps and their retries; the metadata contains the desired and the confirmed state.
"""
