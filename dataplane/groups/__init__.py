"""Consumer groups: who gets which partition and who is a member, pure; and how partitions change
hands.
"""
