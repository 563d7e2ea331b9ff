"""From figures to published files: Parquet, CSV, JSON, pages and signature."""
