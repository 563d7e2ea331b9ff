"""The retention report. Owns inputs and rows of the retention report, and its sums by topic and by
day. Refuses to delete anything.
"""
