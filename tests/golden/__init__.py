"""Golden hashes: no sample of any path changes by one bit."""
