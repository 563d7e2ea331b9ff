"""Consumer groups. Owns pages and exact lags over all clusters. Refuses to guess a lag that
is not known.
"""
