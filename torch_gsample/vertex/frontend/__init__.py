"""What a vertex program sees when it is traced, and what it records."""
