"""Consumer groups. Owns pages, and exact lags over all clusters. Refuses to estimate an unknown
lag.
"""
