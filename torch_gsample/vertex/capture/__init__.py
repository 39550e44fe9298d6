"""Captures the messages of PyG's layers as vertex programs.

A call of ``propagate`` comes in; the same call as a fused kernel between torch
operators goes out.
"""
