"""What SimBenchmark published: errors and CPU seconds by scenario, step length and engine, with no error reduction.

Reference: leggedrobotics/SimBenchmark (2018), data of Bullet 2.88, ODE 0.15.2, MuJoCo 1.5, DART 6.4 and a pre-release
of RaiSim on an i7-7700HQ at 2.8 GHz. Of several solvers of an engine the one with the least error is given; None where
nothing was published or the engine has no such material.
"""

from __future__ import annotations

ENGINES = ("RaiSim", "Bullet", "ODE", "MuJoCo", "DART")
DT = 1e-3  # s: the step at which engines are compared

Figure = float | None
Row = tuple[Figure, Figure, Figure, Figure, Figure]  # by ENGINES

# scenario -> dt -> error
ERRORS: dict[str, dict[float, Row]] = {
    "rolling": {1e-3: (4.089e-7, 3.85e-27, 3.145, 2.0e-3, 3.145)},  # force at 60 degrees
    "bouncing": {
        1e-5: (1.864e-10, 7.523, 0.01850, None, 7.386),
        4e-5: (4.772e-8, 120.4, 0.2960, None, 30.58),
        1e-4: (1.864e-6, 752.3, 1.851, None, 483.2),
        4e-4: (4.771e-4, 1.204e4, 29.63, None, 1.087e4),
        1e-3: (1.862e-2, 7.525e4, 185.03, None, 7.227e4),
        4e-3: (4.765, 1.202e6, 2982.7, None, 1.190e6),
        1e-2: (186.0, 7.407e6, 1.881e4, None, 7.376e6),
        4e-2: (4.739e4, 1.192e8, 3.134e5, None, 1.191e8),
        1e-1: (1.835e6, 7.677e8, 2.033e6, None, 7.673e8),
    },
    "666": {
        1e-4: (1.637e-6, 3.531e-3, 1.547e-6, 1.128e-2, 1.98e-7),
        4e-4: (2.361e-5, 6.300e-2, 2.421e-5, 3.920e-2, 7.18e-3),
        1e-3: (1.353e-4, 0.3825, 1.546e-4, 9.501e-2, 2.82e-4),
        4e-3: (2.114e-3, 5.783, 2.081e-3, 0.3742, 9292.0),
        1e-2: (1.527e-2, 37.42, 1.611e-2, 0.9338, 214.8),
        4e-2: (0.2499, 727.9, 0.2368, 3.849, 1367.0),
        1e-1: (0.9616, 2.785e5, 3.058, 10.99, 6.839),
    },
    "elastic 666": {
        1e-4: (1.103e-3, 167.5, 1.096, None, 2438.0),
        4e-4: (0.2487, 3564.0, 17.51, None, 5.241e4),
        1e-3: (8.368, 4.150e4, 112.3, None, 3.469e5),
        4e-3: (264.1, 8.401e5, 1649.0, None, 6.622e6),
        1e-2: (5.184e6, 9.864e6, 8.560e6, None, 1.287e10),
        1e-1: (1.193e8, 1.720e9, 2.099e7, None, 1.207e12),
    },
    "ANYmal momentum": {  # MuJoCo with RK4
        1e-5: (3.663e-9, 2.64e-8, 1e-24, 6.0e-17, 185.0),
        1e-4: (3.854e-7, 2.64e-6, 1e-25, 1.7e-16, 182.0),
        1e-3: (4.675e-5, 2.658e-4, 5e-26, 4.7e-13, 169.0),
        4e-3: (9.150e-4, 4.268e-3, 1e-27, 3.5e-7, 150.0),
        1e-2: (5.387e-3, 2.271e-2, 7e-28, 2.4e-5, 105.0),
    },
    "ANYmal energy": {  # MuJoCo with RK4
        1e-5: (1.100e-6, 2.72e-2, 3.91e-4, 2.9e-21, 200.2),
        1e-4: (1.108e-4, 7.45e-2, 3.91e-2, 1.6e-21, 203.2),
        4e-4: (1.814e-3, 0.6432, 0.6241, 3.6e-19, 213.7),
        1e-3: (1.184e-2, 3.652, 3.891, 1.6e-17, 236.8),
        4e-3: (0.2147, 55.66, 61.58, 4.5e-14, 392.8),
        1e-2: (1.398, 342.8, 378.1, 5.6e-11, 918.4),
    },
}

# CPU seconds at DT, of the solver whose error is given
SECONDS: dict[str, Row] = {
    "rolling": (1.0, 1.8, 0.53, 1.4, 2.66),
    "bouncing": (0.235, 0.85, 1.88, None, 3.2),
    "666": (1.51, 12.0, 10.6, 12.0, 22.9),
    "elastic 666": (0.655, 2.32, 5.60, None, 8.06),
    "ANYmal momentum": (0.058, 0.44, 2.7, 0.79, 0.53),
    "ANYmal energy": (0.0150, 0.083, 0.73, 0.140, 0.097),
}

STANDING_STEPS = 50_000
# robots -> CPU seconds for STANDING_STEPS steps of 5 ms; the fastest solver of each engine
STANDING: dict[int, Row] = {
    1: (0.408, 3.684, 23.1, 1.739, 5.84),
    4: (2.036, 13.99, 93.3, 7.96, 18.6),
    9: (4.896, 32.2, 208.8, 18.5, 41.2),
    16: (8.707, 58.5, 379.4, 30.9, 74.5),
    25: (14.63, 93.0, 612.7, 49.8, 121.6),
    49: (30.62, None, 1230.0, 106.4, 289.0),
    100: (67.76, None, 3146.0, 233.5, 688.0),
    225: (203.3, None, 11383.0, 540.2, 1687.0),
}
