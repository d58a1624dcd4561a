"""Presets: one YAML file per task and algorithm."""
