"""What a run reads: frozen, checked and archived before the first figure."""
