# SPDX-License-Identifier: Apache-2.0
"""Event files as TensorBoard itself reads them: read_tensorboard.py BUILD

Trains three small phases with the dtrain of a build folder, the first one over a resume that undoes steps, the second
one over a failure that is retried and one that ends the run, and asks TensorBoard (PyPI: tensorboard) for what it sees:
scalars as in metrics.jsonl, histograms as in the last checkpoint, pictures that are whole PNG files, texts, and the
table of hyper-parameters.
"""
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib

from tensorboard import program
from tensorboard.backend.event_processing import event_accumulator

CONFIG = """
seed = 7;
data = { batch = 16; };
training = { epochs = 3; eval_interval = 1; save_interval = 1; };
checkpoint = { every_seconds = 0; keep_last = 100; };
metrics = { histogram_every = 1; };
report = { enabled = false; };
risk_gnn = { hidden = 16; heads = 1; layers = 1; };
world_lstm = { hidden = 16; layers = 1; };
evaluation = { seeds = "1,2"; episodes = 1; };
env = { id = "env_traffic"; instances = 2; };
env_traffic = { scenario = "ring"; episode_s = 16.0; };
phase2_ppo = { train_batch = 64; fragment = 16; iterations = 2; sgd_epochs = 1; };
phase3_constrained = { train_batch = 64; fragment = 16; iterations = 2; sgd_epochs = 1; };
phases = ( { plugin = "phase1_world_model"; training = { learning_rate = 0.003; }; },
           { plugin = "phase2_ppo"; init = "random"; }, { plugin = "phase3_constrained"; } );
"""
PHASES = ("phase1_world_model", "phase2_ppo", "phase3_constrained")


def train(dtrain, folder):
    config, run = os.path.join(folder, "three.cfg"), os.path.join(folder, "run")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG)
    subprocess.run([dtrain, "--config", config, "--run-dir", run, "--threads", "1", "-q", "--max-steps", "70"], check=True)
    old = sorted(glob.glob(os.path.join(run, "checkpoints", "step-*")))[0]
    subprocess.run([dtrain, "run", "--resume", old, "--phase", "1", "-q"], check=True)
    twice = dict(os.environ, DTRAIN_FAULT="run.iterate:2,run.iterate:3")
    failed = subprocess.run([dtrain, "run", "--resume", run, "-q"], env=twice, stderr=subprocess.PIPE, text=True)
    assert failed.returncode == 3 and "failed 2 times" in failed.stderr, failed
    subprocess.run([dtrain, "run", "--resume", run, "-q"], check=True)
    return run


def check_png(data, width, height):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(kind + body), kind
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    pixels = zlib.decompress(packed)
    assert kind == b"IEND" and len(pixels) == (width + 1) * height
    assert len(set(pixels)) > 2, "a picture of one colour"


def tensors(run, phase):
    """Values of every tensor in the last checkpoint of a phase."""
    path = None
    for state in glob.glob(os.path.join(run, "checkpoints", "*", "state.json")):
        info = json.loads(subprocess.run([DTRAIN, "ckpt", "inspect", os.path.dirname(state), "--json"], check=True,
                                         capture_output=True).stdout)
        if info["phase"] == phase and (path is None or info["step"] >= path[0]):
            path = (info["step"], os.path.join(os.path.dirname(state), "model.safetensors"))
    found = {}
    with open(path[1], "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        for name, at in json.loads(file.read(size)).items():
            if name != "__metadata__" and at["dtype"] == "F32":
                begin, end = at["data_offsets"]
                file.seek(8 + size + begin)
                found[name] = struct.unpack(f"<{(end - begin) // 4}f", file.read(end - begin))
    return found


def check_phase(run, number, phase, wanted):
    folder = os.path.join(run, "tensorboard", f"{number}-{phase}")
    events = event_accumulator.EventAccumulator(folder, size_guidance={k: 0 for k in event_accumulator.DEFAULT_SIZE_GUIDANCE})
    events.Reload()
    tags = events.Tags()
    # what is not known (null) is not in an event file
    known = {tag: {step: x for step, x in v.items() if x is not None} for tag, v in wanted.items()}
    wanted = {tag: v for tag, v in known.items() if v and not tag.startswith(("eval/seeds/", "eval/horizon_s/"))}
    assert set(tags["scalars"]) == set(wanted), set(tags["scalars"]) ^ set(wanted)
    for tag, values in wanted.items():
        seen = {e.step: e.value for e in events.Scalars(tag)}
        assert set(seen) == set(values), f"{phase} {tag}: steps {set(seen) ^ set(values)}"
        for step, value in values.items():
            assert seen[step] == struct.unpack("f", struct.pack("f", value))[0], tag
    told = [t.split("/", 1)[1] for t in tags["histograms"] if t.startswith("parameters/")]
    for stem in told:
        values = [v for name, of in tensors(run, phase).items() if name == stem or name.startswith(stem + ".") for v in of]
        last = events.Histograms(f"parameters/{stem}")[-1].histogram_value
        assert last.num == len(values) > 0, f"{stem}: {last.num} of {len(values)} parameters"
        assert last.min == min(values) and last.max == max(values), stem
        assert abs(last.sum - sum(values)) <= 1e-6 * max(1, sum(map(abs, values)))
        assert abs(sum(last.bucket) - last.num) < 0.5 and last.bucket_limit[-1] == last.max
    assert any(t.startswith("parameters/") for t in tags["histograms"]) and any(t.startswith("gradients/") for t in tags["histograms"])
    for tag in tags["images"]:
        for image in events.Images(tag):
            check_png(image.encoded_image_string, image.width, image.height)
    kinds = {t.split("/")[0] for t in tags["images"]}
    assert kinds == {"weights", "trajectories" if number == 1 else "traffic"}, kinds
    texts = {t: events.Tensors(t)[-1].tensor_proto.string_val[0].decode() for t in ("configuration", "evaluation")}
    assert "phase3_constrained" in texts["configuration"] and len(texts["evaluation"]) > 40
    return f"{folder}: {len(wanted)} scalars, {len(tags['histograms'])} histograms, {len(tags['images'])} pictures"


def records(run):
    phases = {}
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            for name, value in record.items():
                if name not in ("step", "phase", "wall_s"):
                    phases.setdefault(record["phase"], {}).setdefault(name, {})[record["step"]] = value
    return phases


def ask(url, path, body=None):
    request = urllib.request.Request(url + "data/plugin/" + path, data=None if body is None else json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def check_server(run):
    """What the tabs of a running TensorBoard show."""
    board = program.TensorBoard()
    board.configure(argv=[None, "--logdir", os.path.join(run, "tensorboard"), "--port", "0", "--load_fast", "false"])
    url = board.launch()
    names = {f"{i + 1}-{phase}" for i, phase in enumerate(PHASES)}
    deadline = time.monotonic() + 90
    while set(ask(url, "scalars/tags")) != names:
        assert time.monotonic() < deadline, "TensorBoard does not see the phases"
        time.sleep(0.5)
    for plugin in ("histograms", "images", "text"):
        assert set(ask(url, f"{plugin}/tags")) == names, plugin
    infos = ask(url, "hparams/experiment", {"experimentName": ""})["hparamInfos"]
    wanted = {"training.learning_rate", "training.optimizer", "amp.enabled", "seed", "models.controller"}
    assert wanted <= {i["name"] for i in infos}, wanted - {i["name"] for i in infos}
    query = {"experimentName": "", "startIndex": 0, "sliceSize": 10, "colParams": [],
             "allowedStatuses": ["STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING", "STATUS_UNKNOWN"]}
    groups = ask(url, "hparams/session_groups", query)["sessionGroups"]
    assert len(groups) == len(PHASES), groups
    for group in groups:
        (session,) = group["sessions"]
        assert session["status"] == "STATUS_SUCCESS", session["name"]
    values = {g["sessions"][0]["name"]: g["hparams"] for g in groups}
    assert values["1-phase1_world_model"]["training.learning_rate"] == 0.003, "what a phase overrides"
    assert values["2-phase2_ppo"]["env.id"] == "env_traffic" and values["2-phase2_ppo"]["phase2_ppo.sgd_epochs"] == 1
    assert not any(name.startswith("phase2_ppo.") for name in values["1-phase1_world_model"])
    print(f"{len(infos)} hyper-parameters of {len(groups)} sessions")


def main(build):
    with tempfile.TemporaryDirectory(prefix="peers-", dir=".") as folder:
        run = train(DTRAIN, folder)
        phases = records(run)
        assert tuple(phases) == PHASES
        for i, phase in enumerate(PHASES):
            print(check_phase(run, i + 1, phase, phases[phase]))
        check_server(run)


DTRAIN = os.path.abspath(os.path.join(sys.argv[1], "dtrain"))
main(sys.argv[1])
