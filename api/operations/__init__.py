"""Operations as objects of the API. Owns the pages of operations, and their state, computed from
generations. Refuses to complete an operation: passes do this.
"""
