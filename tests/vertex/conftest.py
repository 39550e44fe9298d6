import tests.vertex.first_layers  # noqa: F401  (before any other)
