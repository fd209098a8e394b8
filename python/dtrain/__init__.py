# SPDX-License-Identifier: Apache-2.0
"""dtrain for Python: environments (make, make_vec), trainings (run, load_run), policies (Policy). Nothing heavy is imported before it is used."""

from ._build import __version__

_WHERE = {
    "Error": "_native", "ConfigError": "_native", "NotFound": "_native", "environments": "_native",
    "Policy": "policy", "run": "runs", "load_run": "runs", "Run": "runs", "load_weights": "weights",
    "save_weights": "weights", "from_state_dict": "weights", "to_state_dict": "weights",
    "parallel_env": "parallel", "ParallelEnv": "parallel",
    "make": "envs", "make_vec": "envs", "Env": "envs", "VectorEnv": "envs",
}
__all__ = ["__version__", *_WHERE]


def __getattr__(name):
    if name not in _WHERE:
        raise AttributeError(f"module 'dtrain' has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module("." + _WHERE[name], __name__), name)
    except ModuleNotFoundError as e:
        if e.name != "pettingzoo":
            raise
        raise ImportError("dtrain.parallel_env needs PettingZoo: pip install pettingzoo") from e


def __dir__():
    return sorted(__all__)
