"""Operations as callers see them. Owns their pages and their state, computed from
generations. Refuses to settle one: passes do.
"""
