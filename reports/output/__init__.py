"""From figures to published files: Parquet, CSV, JSON, pages, signature."""
