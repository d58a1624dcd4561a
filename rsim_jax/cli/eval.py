"""`rsim eval`: score a trained policy in our task, and in Gymnasium's own MuJoCo task of the same name."""

from __future__ import annotations

from rsim_jax.cli.arguments import CommandError, Parser, positive, run


def main(argv: list[str]) -> int:
    """Exit status of `rsim eval` with these arguments."""
    return run("eval", lambda: _work(argv))


def _work(argv: list[str]) -> None:
    parser = Parser("eval", "Run a trained policy deterministically for whole episodes and print its mean return.")
    parser.add_argument("run", help="run folder, for example runs/hopper-0-20250101-120000")
    parser.add_argument("--in", dest="place", choices=("rsim", "gymnasium"), default="rsim", help="gymnasium: both")
    parser.add_argument("--episodes", type=positive, default=20, help="episodes in each")
    parser.add_argument("--seed", type=int, default=0, help="of the starts")
    args = parser.parse_args(argv)

    from rsim_jax.envs.registry import task_id
    from rsim_jax.training.evaluate import evaluate, evaluate_in_gymnasium
    from rsim_jax.training.policy import load_run
    from rsim_jax.training.tasks import gymnasium_params

    try:
        config, task, policy = load_run(args.run)
        name = task_id(config.task)
        print(f"rsim/{name}: {evaluate(policy, task, args.episodes, args.seed)}")
        if args.place == "gymnasium":
            score = evaluate_in_gymnasium(policy, name, gymnasium_params(config), args.episodes, args.seed)
            print(f"Gymnasium's {name}: {score}")
    except ValueError as error:
        raise CommandError(str(error)) from error
