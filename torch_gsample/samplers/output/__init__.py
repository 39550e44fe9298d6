"""PyG's outputs, and attributes that samplers compute for a batch."""
