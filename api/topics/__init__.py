"""Topics. Owns specs, retention, purges, deletion and the passes that apply them. Refuses to read a
record.
"""
