"""What a report's job is given and hands in. Owns inputs, manifests, checked files and CSV
rows. Refuses to know what a meter or a policy means.
"""
