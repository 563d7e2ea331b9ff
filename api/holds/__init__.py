"""Legal holds. Owns placing and releasing holds, and proof that every log has applied them. Refuses
to delete a record.
"""
