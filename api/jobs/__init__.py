"""Inputs and results of report jobs. Owns inputs, manifests, verified files and CSV rows. Refuses
to interpret meters or policies.
"""
