"""Actions over two logs, in steps that may be repeated: deletions, legal holds, purges.

Owns the steps and their repetition; the metadata says what is wanted and what is done.
"""
