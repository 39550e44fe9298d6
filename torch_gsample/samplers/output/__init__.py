"""PyG's outputs, and what samplers compute for a batch."""
