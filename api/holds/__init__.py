"""Legal holds. Owns placing, releasing and proving them in every log. Refuses to delete a
record.
"""
