"""Programs on matrices as samplers."""
