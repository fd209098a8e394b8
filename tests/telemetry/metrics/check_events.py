# SPDX-License-Identifier: Apache-2.0
"""Decodes TensorBoard event files by hand and holds them against a run: check_events.py RUN END...

Every checksum is right; after what a resume undid is dropped, as TensorBoard does, each phase's folder has exactly the
numbers of its records in metrics.jsonl, as floats; the configuration is there as a text, and its values as
hyper-parameters. END is how each phase's session ended, said once at the end of its last file: success, failure, or
none where it did not.
"""
import glob
import json
import math
import os
import struct
import sys

TABLE = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
    TABLE.append(i)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        (crc,) = struct.unpack_from("<I", data, at + 8)
        assert crc == masked_crc(data[at:at + 8]), f"{path}: checksum of a length at byte {at}"
        body = data[at + 12:at + 12 + length]
        (crc,) = struct.unpack_from("<I", data, at + 12 + length)
        assert crc == masked_crc(body), f"{path}: checksum of a record at byte {at}"
        yield body
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        else:
            assert wire == 5, f"wire type {wire}"
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        yield key >> 3, value


def read_file(path, scalars, texts, others):
    for number, body in enumerate(records(path)):
        event = dict(fields(body))
        assert 1.6e9 < event[1] < 1e10, "a time of this century"
        step = event.get(2, 0)
        if number == 0:
            assert event[3] == b"brain.Event:2"
        elif 7 in event:
            assert dict(fields(event[7])) == {1: 1}
            for values in scalars.values():
                for old in [s for s in values if s >= step]:
                    del values[old]
        else:
            for _, value in fields(event[5]):
                value = dict(fields(value))
                tag = value[1].decode()
                if 2 in value:
                    scalars.setdefault(tag, {})[step] = value[2]
                    continue
                if 4 in value or 5 in value: # a picture, a histogram: tests/peers looks into them
                    others[tag] = others.get(tag, 0) + 1
                    continue
                plugin = dict(fields(dict(fields(value[9]))[1]))
                if plugin[1] == b"hparams":
                    others.setdefault(tag, []).append(plugin[2])
                    continue
                assert plugin == {1: b"text"}
                tensor = dict(fields(value[8]))
                assert tensor[1] == 7 and dict(fields(dict(fields(tensor[2]))[2])) == {1: 1}
                texts[tag] = tensor[8].decode()


def same(a, b):
    return (b is None and not math.isfinite(a)) or (b is not None and a == struct.unpack("f", struct.pack("f", b))[0])


def ends(others):
    """Of a phase's session, SessionEndInfo in HParamsPluginData."""
    infos = [dict(fields(dict(fields(info))[4])) for info in others.get("_hparams_/session_end_info", [])]
    return [{1: "success", 2: "failure"}[info[1]] for info in infos]


def check_histograms(others, end):
    """Each layer or tensor its own, and not too many of them."""
    names = {kind: [t.split("/", 1)[1] for t in others if t.startswith(kind + "/")] for kind in ("parameters", "gradients")}
    roles = {name.split(".")[0] for name in names["parameters"]}
    assert end == "none" or roles, "no histograms"
    for role in roles:
        n = [sum(name.split(".")[0] == role for name in names[kind]) for kind in names]
        assert 1 < n[0] <= 32 and n[1] <= n[0], f"{role}: {n} histograms of parameters and gradients"


def main(run, *wanted_ends):
    phases = []
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if not phases or phases[-1][0] != record["phase"]:
                phases.append((record["phase"], {}))
            for name, value in record.items():
                if name not in ("step", "phase", "wall_s"):
                    phases[-1][1].setdefault(name, {})[record["step"]] = value
    folders = sorted(os.listdir(os.path.join(run, "tensorboard")))
    assert folders == [f"{i + 1}-{phase}" for i, (phase, _) in enumerate(phases)], folders
    assert len(folders) == len(wanted_ends), wanted_ends
    for folder, (_, wanted), end in zip(folders, phases, wanted_ends):
        scalars, texts, others = {}, {}, {}
        for path in sorted(glob.glob(os.path.join(run, "tensorboard", folder, "events.out.tfevents.*")), key=os.path.getmtime):
            read_file(path, scalars, texts, others)
        wanted = {tag: v for tag, v in wanted.items() if not tag.startswith(("eval/seeds/", "eval/horizon_s/"))}
        assert set(scalars) == set(wanted), set(scalars) ^ set(wanted)
        for tag, values in wanted.items():
            assert set(scalars[tag]) == set(values), f"{tag}: steps {set(scalars[tag]) ^ set(values)}"
            assert all(same(scalars[tag][step], v) for step, v in values.items()), tag
        with open(os.path.join(run, "config.cfg"), encoding="utf-8") as file:
            assert texts["configuration"] == "".join("    " + line for line in file)
        assert b"training.learning_rate" in others["_hparams_/session_start_info"][0]
        assert ends(others) == [end for end in [end] if end != "none"], f"{folder}: {ends(others)}, wanted {end}"
        check_histograms(others, end)
        print(f"{folder}: {len(scalars)} tags, {sum(map(len, scalars.values()))} scalars")


main(*sys.argv[1:])
