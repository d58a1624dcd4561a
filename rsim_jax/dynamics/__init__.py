"""Kinematics, inertia, bias, factorisation, forces and integration of kinematic trees."""
