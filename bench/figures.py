"""A measured figure as one line of JSON, as bench/figures.h writes it. A ratio above 1 means ours is better; a
figure without a peer in reach has none."""

import pathlib
import platform
import re


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    cpu = re.search(r"model name\s*:\s*(.*)", text).group(1)
    cores = len(re.findall(r"^processor", text, re.M))
    return f"{cpu}, {cores} cores, {platform.system()} {platform.release()}"


def row(figure, value, unit, peer=None, peer_value=None):
    more_is_better = unit.endswith("/s")
    ratio = None if peer_value is None else (value / peer_value if more_is_better else peer_value / value)
    return dict(figure=figure, value=round(value, 3), unit=unit, peer=peer,
                peer_value=None if peer_value is None else round(peer_value, 3),
                ratio=None if ratio is None else round(ratio, 3), machine=machine())
