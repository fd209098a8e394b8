#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Control the signals of SUMO through TraCI by a policy that dtrain exported, without dtrain.

    python3 traci_policy.py town.sumocfg town.onnx [SEED]           # needs onnxruntime
    python3 traci_policy.py town.sumocfg town.safetensors [SEED]    # needs libdtrain-policy

The policy is one of controller_mlp that observes phase.near, phase.standing, phase.shown and phase.allowed, in any order:

    dtrain --plugin phase2_ppo --set env.id=sumo --set env_sumo.sumocfg=town.sumocfg --run-dir town \\
        --set models.controller=controller_mlp \\
        --set env_sumo.observation="phase.near, phase.standing, phase.shown, phase.allowed"
    dtrain export --checkpoint town --format onnx --out town.onnx

Other quantities need their own line in observe(). `dtrain export` writes FILE.json next to the file: it names the signals,
the letters of their phases, and the columns. The last line printed is JSON; time_loss_s is the metric of `dtrain eval`.
LIBDTRAIN_POLICY names the library where the loader does not find it.
"""
import ctypes, json, os, sys, xml.etree.ElementTree as xml
sys.path.append(os.path.join(os.environ.get("SUMO_HOME", "/usr/share/sumo"), "tools"))
try:
    import traci  # noqa: E402
except ImportError:
    sys.exit("TraCI is missing: SUMO_HOME has to name the folder of SUMO that has tools/traci")
if len(sys.argv) < 3:
    sys.exit("usage: traci_policy.py FILE.sumocfg POLICY.onnx|POLICY.safetensors [SEED]")

scenario, file, seed = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "1"
about = json.load(open(file + ".json"))
setting = {key.split(".", 1)[1]: value for key, value in about["settings"].items()}
near_m, far_m = float(setting["near_m"]), float(setting["detection_m"])
yellow_s, min_green_s = float(setting["yellow_s"]), float(setting["min_green_s"])
places, step_s = about["places"], about["step_s"]
P = len(places[0]["choices"])  # phases of the signal that has the most; others have "" there
MADE = ("phase.near", "phase.standing", "phase.shown", "phase.allowed")
given = about["inputs"]
columns = [c["name"] for c in sorted(given[0].get("columns") or [], key=lambda c: c["first"])]
if len(given) != 1 or given[0]["name"] != "signal" or not columns or not set(columns) <= set(MADE):
    observed = [c["name"] for port in given for c in port.get("columns") or []]
    sys.exit(f"{file}: observes {', '.join(observed)}; this program makes {', '.join(MADE)} alone. Train with "
             f"--set models.controller=controller_mlp --set env_sumo.observation=\"{', '.join(MADE)}\"")


def load_onnx():
    import numpy, onnxruntime
    session = onnxruntime.InferenceSession(file)

    def act(rows, masks):
        given = {"signal": numpy.array(rows, "f4"), "mask": numpy.array(masks, "f4")}
        return session.run(["action_i"], given)[0][:, 0]
    return act


def load_library():
    name = os.environ.get("LIBDTRAIN_POLICY", "libdtrain-policy.so")
    try:
        lib = ctypes.CDLL(name)
    except OSError as why:
        sys.exit(f"{why}; run ldconfig, or set LIBDTRAIN_POLICY=/usr/local/lib/libdtrain-policy.so")
    policy, why = ctypes.c_void_p(), ctypes.create_string_buffer(512)
    if lib.dt_policy_load(file.encode(), ctypes.byref(policy), why, 512) != 0:
        sys.exit(why.value.decode())

    class Io(ctypes.Structure):  # dt_policy_io of dtrain/policy.h
        _fields_ = [("struct_size", ctypes.c_uint32), ("n_places", ctypes.c_uint32), ("obs", ctypes.c_void_p)]
        _fields_ += [(name, ctypes.c_void_p) for name in "size alive truncated mask act_i act_f report".split()]

    def act(rows, masks):
        flat = [x for row in rows for x in row]
        row, chosen = (ctypes.c_float * len(flat))(*flat), (ctypes.c_int32 * len(rows))()
        mask = bytes(int(x) for m in masks for x in m)
        obs = (ctypes.c_void_p * 1)(ctypes.addressof(row))
        io = Io(ctypes.sizeof(Io), len(rows), ctypes.addressof(obs))
        io.mask, io.act_i = ctypes.cast(mask, ctypes.c_void_p), ctypes.addressof(chosen)
        if lib.dt_policy_act(policy, ctypes.byref(io), why, 512) != 0:
            sys.exit(why.value.decode())
        return list(chosen)
    return act


act = load_onnx() if file.endswith(".onnx") else load_library()
trips = file + ".trips.xml"
traci.start(["sumo", "-c", scenario, "--seed", seed, "--time-to-teleport", "-1", "--no-step-log",
             "--xml-validation", "never", "--tripinfo-output", trips, "--tripinfo-output.write-unfinished"])
light, vehicle = traci.trafficlight, traci.vehicle
begin, end = traci.simulation.getTime(), traci.simulation.getEndTime()
lane_of = {p["name"]: [links[0][0] if links else "" for links in light.getControlledLinks(p["name"])] for p in places}
shown, since = [], [begin] * len(places)
for place in places:  # the phase that the signal's program shows, or leads to
    program, k = light.getAllProgramLogics(place["name"])[0].phases, light.getPhase(place["name"])
    states = [program[(k + i) % len(program)].state for i in range(len(program))]
    shown.append(place["choices"].index(next(s for s in states if s in place["choices"])))
    light.setRedYellowGreenState(place["name"], place["choices"][shown[-1]])


def advance(until):
    while traci.simulation.getTime() < until:
        traci.simulationStep()


def observe():
    near, standing = {}, {}  # by lane
    for v in vehicle.getIDList():
        for name, link, distance, _ in vehicle.getNextTLS(v)[:1]:
            if name in lane_of and distance <= far_m:
                lane = lane_of[name][link]
                near[lane] = near.get(lane, 0) + (distance <= near_m)
                standing[lane] = standing.get(lane, 0) + (vehicle.getSpeed(v) < 0.1)
    rows, masks, now = [], [], traci.simulation.getTime()
    for k, place in enumerate(places):
        phases = place["choices"]
        lanes = [{lane_of[place["name"]][i] for i, c in enumerate(phase) if c in "Gg"} for phase in phases]
        free = now <= begin or now - since[k] >= min_green_s
        masks.append([1 if phases[p] and (free or p == shown[k]) else 0 for p in range(P)])
        quantity = {"phase.near": [sum(near.get(lane, 0) for lane in of) for of in lanes],
                    "phase.standing": [sum(standing.get(lane, 0) for lane in of) for of in lanes],
                    "phase.shown": [1 if p == shown[k] else 0 for p in range(P)],
                    "phase.allowed": masks[-1]}
        rows.append([x for name in columns for x in quantity[name]])
    return rows, masks


decisions = []
while (now := traci.simulation.getTime()) < end:
    choice = act(*observe())
    decisions += [int(c) for c in choice]
    for k, place in enumerate(places):
        if choice[k] != shown[k]:
            old, new = light.getRedYellowGreenState(place["name"]), place["choices"][choice[k]]
            yellow = "".join("y" if a in "Gg" and b not in "Gg" else a for a, b in zip(old, new))
            ends = "y" in yellow and yellow_s > 0
            light.setRedYellowGreenState(place["name"], yellow if ends else new)
            since[k], shown[k] = now + (yellow_s if ends else 0), int(choice[k])
    advance(min(now + yellow_s, end))
    for k, place in enumerate(places):
        light.setRedYellowGreenState(place["name"], place["choices"][shown[k]])
    advance(min(now + step_s, end))
traci.close()
lost = [float(trip.get("timeLoss")) for trip in xml.parse(trips).getroot().iter("tripinfo")]
changes = sum(a != b for a, b in zip(decisions, decisions[len(places):]))
print(json.dumps({"decisions": len(decisions), "changes": changes, "time_loss_s": sum(lost) / len(lost)}))
