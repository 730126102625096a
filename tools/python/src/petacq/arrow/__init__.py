"""Records as Arrow tables and in Parquet files."""
