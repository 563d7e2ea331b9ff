"""Report runs. Owns queueing, starting, verifying and publishing of report runs, and their files.
Refuses to compute a figure.
"""
