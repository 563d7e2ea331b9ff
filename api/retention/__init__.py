"""The retention report. Owns its inputs, its rows, its sums by topic and by day. Refuses to
delete anything.
"""
