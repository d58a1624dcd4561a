"""Quantities of a state that users ask for: poses, velocities, matrices, energy, momentum."""
