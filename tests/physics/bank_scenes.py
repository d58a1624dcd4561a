"""Scenes of several independent mechanisms, so that many cases share one compiled program."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
from physics.trials import EXACT

import rsim_jax as rsim

SLIDERS = """
<mujoco model="sliders"><option timestep="0.001"/><worldbody>
  <geom name="ground" type="plane" size="0 0 1" friction="0.1" contype="0" conaffinity="1"/>
  <body name="ghost"><joint name="box_x" type="slide" axis="1 0 0"/>
    <inertial pos="0 0 0" mass="1e-6" diaginertia="1e-9 1e-9 1e-9"/>
    <body name="box" pos="0 0 0.05"><joint name="box_z" type="slide" axis="0 0 1"/>
      <geom name="box" type="box" size="0.1 0.1 0.05" mass="1" friction="1" conaffinity="0"/></body></body>
  <body name="ball" pos="1 0 0.02"><joint name="ball_x" type="slide" axis="1 0 0"/>
    <joint name="ball_z" type="slide" axis="0 0 1"/>
    <geom name="ball" type="sphere" size="0.02" mass="10" friction="0.5" conaffinity="0"/></body>
  <body name="light" pos="2 0 0.1"><joint name="light" type="slide" axis="0 0 1"/>
    <geom name="light" type="sphere" size="0.1" mass="1" conaffinity="2"/></body>
  <body name="heavy" pos="2 0 0.3"><joint name="heavy" type="slide" axis="0 0 1"/>
    <geom name="heavy" type="sphere" size="0.1" mass="100" contype="2" conaffinity="0"/></body>
  {cradle}
</worldbody>
<contact>{pairs}</contact>
<actuator><motor name="box" joint="box_x"/><motor name="ball" joint="ball_x"/></actuator></mujoco>
"""
CRADLE = 5  # balls of radius 0.05 m and 1 kg on slides along x, touching at zero
FEET = """
<mujoco model="feet"><option timestep="0.001"/><worldbody>
  <geom name="ground" type="plane" size="0 0 1" friction="0.1" contype="0" conaffinity="1"/>
  {bodies}
  <body name="rod" pos="0 9 0.001"><joint name="rod_x" type="slide" axis="1 0 0"/>
    <joint name="rod_z" type="slide" axis="0 0 1"/><joint name="rod_turn" axis="0 1 0"/>
    <inertial pos="0.223607 0 0.447214" mass="1" diaginertia="0.0833333 0.0833333 0.0833333"/>
    <geom name="tip" type="sphere" size="0.001" mass="0" friction="1.8" conaffinity="0"/></body>
</worldbody><actuator><motor name="plate" joint="plate_rotor"/><motor name="small" joint="small_rotor"/></actuator>
</mujoco>
"""
ROTOR = 0.1  # kg
FOOT = 0.02  # m, radius
TABLE = [(0.4, 0.25), (0.4, -0.25), (-0.4, 0.25), (-0.4, -0.25)]
TABLE_COM = (0.1, -0.05)


def triangle(radius):
    angles = 2 * np.pi * np.arange(3) / 3
    return [(radius * np.cos(a), radius * np.sin(a)) for a in angles]


def standing(name, place, feet, radius, mass, inertia, com, friction, inside=""):
    """MJCF of a free body on spherical feet that all touch the ground; `inside` is more of its MJCF."""
    spheres = "".join(
        f'<geom name="{name}{k}" type="sphere" size="{radius}" pos="{x} {y} {radius}" mass="0" '
        f'friction="{friction}" conaffinity="0"/>'
        for k, (x, y) in enumerate(feet)
    )
    return (
        f'<body name="{name}" pos="{place} 0 0"><freejoint/><inertial pos="{com[0]} {com[1]} {com[2]}" '
        f'mass="{mass}" diaginertia="{inertia} {inertia} {inertia}"/>{spheres}{inside}</body>'
    )


def rotor(name):
    """A wheel about the vertical, whose motor turns the body it is on the other way."""
    return (
        f'<body><joint name="{name}" axis="0 0 1"/>'
        f'<inertial pos="0 0 0" mass="{ROTOR}" diaginertia="0.1 0.1 0.1"/></body>'
    )


@functools.cache
def sliders():
    """A box and a ball pushed along x, a light ball under a heavy one, a cradle; default settings."""
    balls = "".join(
        f'<body pos="{5 + 0.1 * k} 0 0.5"><joint name="cradle{k}" type="slide" axis="1 0 0"/>'
        f'<geom name="cradle{k}" type="sphere" size="0.05" mass="1" contype="0" conaffinity="0"/></body>'
        for k in range(CRADLE)
    )
    pairs = "".join(f'<pair geom1="cradle{k}" geom2="cradle{k + 1}" condim="1"/>' for k in range(CRADLE - 1))
    return rsim.load(SLIDERS.format(cradle=balls, pairs=pairs), dtype="float64")


@functools.cache
def feet():
    """Two three-legged plates, a table, a wheel of four coincident contacts and a rod on its tip; exact solver."""
    bodies = (
        standing("plate", 0, triangle(1.5), FOOT, 3 - ROTOR, 1.5**2 * 3, (0, 0, 0), 2 / 3, rotor("plate_rotor"))
        + standing("small", 10, triangle(1.0), FOOT, 1 - ROTOR, 1, (0, 0, 0), 0.5, rotor("small_rotor"))
        + standing("table", 20, TABLE, FOOT, 4, 1, (*TABLE_COM, 0.5), 0.6)
        + standing("wheel", 30, [(0, 0)] * 4, 1, 1, 1, (0, 0, 1), 0.1)
    )
    return rsim.load(FEET.format(bodies=bodies), options=EXACT["float64"], dtype="float64")


def entry(model, name):
    """First row of a joint in q and in qd, by the joint's or, for a free joint, the body's name."""
    t = model.topology
    j = model.joint_id(name) if name in t.joint_names else t.joint_body.index(model.body_id(name))
    return t.joint_qadr[j], t.joint_dadr[j]


def pairs_of(model, *names):
    """Pairs with a geom whose name starts with one of these."""
    geoms = model.topology.geom_names
    return [k for k, pair in enumerate(model.topology.pair_geoms) if any(geoms[g].startswith(names) for g in pair)]


def per_world(model, count, **leaves):
    """The same leaves per world whatever is given, so that one program serves all trials."""
    varied = {"gravity": np.array([0, 0, -9.81])}
    names = ("body_mass", "pair_friction", "pair_static_friction", "pair_restitution", "pair_restitution_threshold")
    for name in ("gravity", *names):
        value = np.asarray(leaves.get(name, varied.get(name, getattr(model, name))), float)
        shape = getattr(model, name).shape[:-1]
        value = value[..., None] if value.ndim == len(shape) else value
        varied[name] = jnp.asarray(np.broadcast_to(value, (*shape, count)), model.dtype)
    return model.replace(**varied, dt=jnp.asarray(leaves.get("dt", 0.001), model.dtype))
