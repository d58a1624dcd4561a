"""Writes drake_point_contact.json: spheres in Drake's continuous point contact, state by state.

Drake is no dependency of this project; run it where `pip install drake==1.51.1` works. Drake's regularisation of
friction differs from ours below the stiction tolerance, so only states that slip faster are kept. Its continuous plant
reports the separation speed with the opposite sign of its documentation; it is recorded as reported.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from pydrake.all import (
    AddContactMaterial,
    AddMultibodyPlantSceneGraph,
    ContactModel,
    CoulombFriction,
    DiagramBuilder,
    HalfSpace,
    ProximityProperties,
    Quaternion,
    RigidTransform,
    SpatialInertia,
    SpatialVelocity,
    Sphere,
)

STIFFNESS, DISSIPATION, FRICTION, STICTION, RADII = 1e4, 0.3, 0.4, 1e-4, (0.1, 0.15)


def properties():
    """Of one geometry: a pair of them has half the stiffness, and the same dissipation and friction."""
    found = ProximityProperties()
    friction = CoulombFriction(FRICTION, FRICTION)
    AddContactMaterial(dissipation=DISSIPATION, point_stiffness=2 * STIFFNESS, friction=friction, properties=found)
    return found


def plant(radii):
    """Free 1 kg spheres; a single one has the ground below it."""
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, time_step=0.0)
    plant.set_contact_model(ContactModel.kPoint)
    if len(radii) == 1:
        plant.RegisterCollisionGeometry(plant.world_body(), RigidTransform(), HalfSpace(), "ground", properties())
    bodies = []
    for k, radius in enumerate(radii):
        body = plant.AddRigidBody(f"ball{k}", SpatialInertia.SolidSphereWithMass(1.0, radius))
        plant.RegisterCollisionGeometry(body, RigidTransform(), Sphere(radius), f"ball{k}", properties())
        bodies.append(body)
    plant.Finalize()
    plant.set_stiction_tolerance(STICTION)
    return builder.Build(), plant, bodies


def positions(rng, count):
    depth = rng.uniform(1e-4, 3e-3)
    if count == 1:
        return [np.array([*rng.uniform(-0.3, 0.3, 2), RADII[0] - depth])]
    direction, first = rng.normal(size=3), rng.uniform(-0.2, 0.2, 3)
    return [first, first + direction / np.linalg.norm(direction) * (sum(RADII) - depth)]


def states(rng, radii, wanted=4):
    """What Drake reports in random states with one contact that slips."""
    diagram, system, bodies = plant(radii)
    root = diagram.CreateDefaultContext()
    context, found = system.GetMyMutableContextFromRoot(root), []
    while len(found) < wanted:
        balls = []
        for body, position in zip(bodies, positions(rng, len(radii)), strict=True):
            turn = rng.normal(size=4)
            turn /= np.linalg.norm(turn)
            v, w = 0.7 * rng.normal(size=3), 3 * rng.normal(size=3)
            system.SetFreeBodyPose(context, body, RigidTransform(Quaternion(turn), position))
            system.SetFreeBodySpatialVelocity(body, SpatialVelocity(w, v), context)
            values = {"position": position, "quaternion": turn, "velocity": v, "angular_velocity": w}
            balls.append({name: list(map(float, value)) for name, value in values.items()})
        results = system.get_contact_results_output_port().Eval(context)
        if results.num_point_pair_contacts() != 1:
            continue
        contact = results.point_pair_contact_info(0)
        pair = contact.point_pair()
        if contact.slip_speed() < 10 * STICTION or not np.any(contact.contact_force()):
            continue
        sign = 1 if contact.bodyB_index() == bodies[-1].index() else -1
        found.append(
            {
                "bodies": balls,
                "force_on_last": [float(sign * x) for x in contact.contact_force()],
                "point": list(map(float, contact.contact_point())),
                "depth": float(pair.depth),
                "normal_into_last": [float(-sign * x) for x in pair.nhat_BA_W],
                "separation_speed_as_reported": float(contact.separation_speed()),
                "slip_speed": float(contact.slip_speed()),
            }
        )
    return found


def main() -> None:
    rng = np.random.default_rng(3)
    record = {
        "drake": version("drake"),
        "contact": "continuous plant, kPoint",
        "stiffness": STIFFNESS,
        "dissipation": DISSIPATION,
        "friction": FRICTION,
        "stiction_tolerance": STICTION,
        "radii": RADII,
        "states": [*states(rng, RADII[:1]), *states(rng, RADII)],
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
