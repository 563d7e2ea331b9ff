"""Report runs. Owns queueing, starting, checking and publishing them, and their files.
Refuses to compute a figure.
"""
