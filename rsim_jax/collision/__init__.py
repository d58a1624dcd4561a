"""Closest points of the candidate pairs, and the choice of the contacts that a step will solve."""
