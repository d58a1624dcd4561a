"""Arithmetic on (component, item, world) arrays."""
