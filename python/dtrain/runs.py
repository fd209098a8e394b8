# SPDX-License-Identifier: Apache-2.0
"""Trainings from Python: start the program, read its run folder, weights by name."""

import json
import os
import subprocess
import tempfile

import numpy as np

from .__main__ import program
from ._native import STATUS, ConfigError, Error, NotFound, option_text
from .weights import load_weights

_EXITS = {2: "DT_ECONFIG", 3: "DT_EPLUGIN", 4: "DT_EDATA", 7: "DT_EDIVERGED"}


def run(config=None, *, run_dir, plugin=None, options=None, arguments=(), progress=None, init_from=None, resume=False):
    """Trains, and returns the Run when that is over.

    config: a configuration file, or several; plugin: the phase in place of one. options: {"env.id": "cartpole", ...}, as
    --set. arguments: others of `dtrain run`, as ["--threads", "4"]. progress: called with each new row of metrics, a
    dictionary. init_from: a run or a file of weights. resume: continue the run in run_dir where it has one.
    Raises ConfigError (exit code 2) or Error, with the messages of the program."""
    command = [program(), "run", "-q", "--run-dir", os.fspath(run_dir)]
    for file in [config] if isinstance(config, (str, os.PathLike)) else config or []:
        command += ["--config", os.fspath(file)]
    command += ["--plugin", plugin] if plugin else []
    for key, value in (options or {}).items():
        command += ["--set", f"{key}={option_text(value)}"]
    command += ["--init-from", os.fspath(init_from)] if init_from is not None else []
    command += (["--resume", "auto"] if resume else []) + [str(a) for a in arguments]
    at = _size(run_dir)
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            code = None
            while code is None:
                try:
                    code = process.wait(0.2)
                except subprocess.TimeoutExpired:
                    pass
                at = _report(run_dir, at, progress)
        finally:
            if process.poll() is None:  # progress raised, or Ctrl-C: the state is saved
                process.terminate()
                process.wait()
        errors.seek(0)
        text = errors.read().decode("utf-8", "replace").strip()
    if code != 0:
        kind = ConfigError if code == 2 else Error
        raise kind(text or f"dtrain ended with code {code}", _EXITS.get(code, "DT_EINTERRUPTED" if code == 75 else ""))
    return load_run(run_dir)


def _size(run_dir):
    try:
        return os.path.getsize(os.path.join(run_dir, "metrics.jsonl"))
    except OSError:
        return 0


def _report(run_dir, at, progress):
    """Hands over the rows of metrics after byte `at`, whole lines; returns where they end."""
    if progress is None or _size(run_dir) == at:
        return at
    with open(os.path.join(run_dir, "metrics.jsonl"), "rb") as f:
        text = f.read()
    if len(text) < at or (at > 0 and text[at - 1 : at] != b"\n"):
        # a run that is resumed goes back to its checkpoint: what is new begins after the rows that are there now
        at = text.rfind(b"\n") + 1
    for line in text[at:].split(b"\n")[:-1]:
        progress(json.loads(line))
        at += len(line) + 1
    return at


def load_run(folder):
    """The run in a folder."""
    return Run(folder)


class Run:
    """A run folder: metrics as arrays, weights by name."""

    def __init__(self, folder):
        self.folder = os.fspath(folder)
        if not os.path.isfile(os.path.join(self.folder, "meta.json")):
            raise NotFound(f"{self.folder} is no run: it has no meta.json", STATUS[-4])
        with open(os.path.join(self.folder, "meta.json"), encoding="utf-8") as f:
            self.meta = json.load(f)

    def __repr__(self):
        return f"Run({self.folder!r})"

    def rows(self):
        """All records of metrics, a dictionary each; keys differ between records."""
        try:
            with open(os.path.join(self.folder, "metrics.jsonl"), encoding="utf-8") as f:
                return [json.loads(line) for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def metrics(self):
        """Name to array, one value per record; NaN (None of texts) where a record lacks it."""
        rows = self.rows()
        names = dict.fromkeys(k for r in rows for k in r)
        return {k: _column([r.get(k) for r in rows]) for k in names}

    def frame(self):
        """The same as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(self.metrics())

    def checkpoints(self):
        """Folders of checkpoints, the oldest first."""
        base = os.path.join(self.folder, "checkpoints")
        names = os.listdir(base) if os.path.isdir(base) else []
        return [os.path.join(base, n) for n in sorted(names) if os.path.isfile(os.path.join(base, n, "COMMIT"))]

    def weights(self, checkpoint=None):
        """Name to array of a checkpoint (a folder of checkpoints(); default: the newest)."""
        folders = self.checkpoints()
        if checkpoint is None and not folders:
            raise NotFound(f"{self.folder} has no checkpoint", STATUS[-4])
        return load_weights(os.path.join(checkpoint or folders[-1], "model.safetensors"))

    def export(self, path):
        """Writes the policy for Policy.load: `dtrain export`."""
        command = [program(), "export", "-q", "--checkpoint", self.folder, "--out", os.fspath(path)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise Error(done.stderr.decode("utf-8", "replace").strip(), _EXITS.get(done.returncode, ""))
        return os.fspath(path)


def _column(values):
    if any(isinstance(v, (str, list, dict)) for v in values):
        return np.array(values, object)
    return np.array([np.nan if v is None else v for v in values], np.float64)
