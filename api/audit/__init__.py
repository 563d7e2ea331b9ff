"""The audit as callers see it. Owns its pages. Refuses to write a link."""
