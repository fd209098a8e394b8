# SPDX-License-Identifier: Apache-2.0
"""Called by make.sh: cut.py REPORT.html FRAME.svg FOLDER writes FOLDER/report.svg and FOLDER/episode.svg.

Both keep the style that dtrain gave them, so that they are light or dark as the reader's screen is. What only a pointer
or a larger picture needs is left out to keep them small.
"""
import re
import sys
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
CHARTS = [  # phase, counted from 0; name in the report; what it is
    (0, "charts/episodic_return", "Phase 2, PPO: return of an episode"),
    (0, "env/strict_delay_s", "Phase 2: delay per vehicle, s"),
    (1, "costs/starvation", "Phase 3: cost of starvation, and its limit"),
    (1, "multipliers/starvation", "Phase 3: multiplier of that limit"),
]
WIDE, HIGH, TITLE, GAP = 340, 176, 22, 20
CROP = 0.2  # of a frame, on every side: the four junctions are in its middle
BARE = re.compile(r' (data-[a-z-]+|role|aria-label)="[^"]*"| xmlns(:\w+)?="[^"]*"')


def text_of(element):
    ET.register_namespace("", "http://www.w3.org/2000/svg")
    return BARE.sub("", ET.tostring(element, encoding="unicode")).replace(" />", "/>")


def chart_of(page, phase, name):
    """The chart of that name in that phase; names may come again in another phase, in the order of phases."""
    found = [e for e in page.iter() if e.tag.endswith("svg") and e.get("aria-label") == name]
    with_name = found[phase] if len(found) > phase else found[-1]
    for parent in with_name.iter():  # where the pointer is
        for child in list(parent):
            if child.get("class") == "at":
                parent.remove(child)
    for e in with_name.iter():
        e.tag = SVG + e.tag.split("}")[-1]
    return with_name


def plain(palette, rules):
    """The rules with their colours written out, light and then dark: not every reader of SVG knows variables."""
    light, dark = (dict(re.findall(r"(--\w+): ([^;]+);", part)) for part in palette.split("@media", 1))

    def with_colours(rule, colour):
        return re.sub(r"var\((--\w+)\)", lambda m: colour[m.group(1)], rule)

    coloured = [rule for rule in rules if "var(" in rule]
    lines = ["svg { color-scheme: light dark; }"] + [with_colours(rule, light) for rule in rules]
    lines += ["@media (prefers-color-scheme: dark) {"] + [with_colours(rule, dark) for rule in coloured] + ["}"]
    return "\n".join(lines)


def report(html, out):
    page = ET.parse(html).getroot()
    style = "".join(e.text for e in page.iter() if e.tag.endswith("}style"))
    rules = [line for line in style.splitlines() if re.match(r"\.(chart text|chart \.|grid|line|raw|c0|ref)\b", line)]
    rules += ["text { font-family: system-ui, sans-serif; }", ".paper { fill: var(--paper); }",
              ".title { font-size: 13px; font-weight: 600; fill: var(--ink); }"]
    body = []
    for i, (phase, name, title) in enumerate(CHARTS):
        x, y = i % 2 * (WIDE + GAP) + GAP / 2, i // 2 * (HIGH + TITLE + GAP) + GAP
        chart = chart_of(page, phase, name)
        for key, value in (("x", x), ("y", y + TITLE - 12), ("width", WIDE), ("height", HIGH)):
            chart.set(key, f"{value:g}")
        body.append(f'<text class="title" x="{x + 6:g}" y="{y:g}">{title}</text>' + text_of(chart))
    wide, high = 2 * (WIDE + GAP), 2 * (HIGH + TITLE + GAP)
    css = plain(style[:style.index("* {")], rules)
    out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
              f'role="img" aria-label="four charts of a report"><style>{css}\n</style>'
              '<rect class="paper" width="100%" height="100%" rx="6"/>\n' + "\n".join(body) + "\n</svg>\n")


def episode(svg, out):
    with open(svg, encoding="utf-8") as file:
        text = file.read()
    head, style, drawn = re.match(r"(.*?<style>)(.*?)</style>(.*)", text, re.DOTALL).groups()
    rules = [line for line in style.splitlines() if re.match(r"\.(view \.|red|r0)", line)]
    drawn = re.sub(r'<path class="hair"[^>]*>', "", drawn)  # for pictures of whole towns
    drawn = re.sub(r"(\d)\.0(?!\d)", r"\1", drawn)
    cars = re.findall(r'<rect class="car [^"]*"( x="[^"]*" y="[^"]*" width="[^"]*" height="[^"]*" rx="[^"]*")', drawn)
    usual = max(set(cars), key=cars.count)
    drawn = drawn.replace(usual + " transform", ' href="#c" transform')
    drawn = re.sub(r'<rect class="car (r\d)[^"]*" href', r'<use class="\1" href', drawn)
    side = float(re.search(r'viewBox="0 0 ([0-9.]+)', head).group(1))
    begin, wide = f"{CROP * side:g}", f"{(1 - 2 * CROP) * side:g}"
    head = head.replace(f"0 0 {side} {side}", f"{begin} {begin} {wide} {wide}", 1)
    head = head.replace(' class="view"', "", 1).replace("<style>", '<g class="view"><style>')
    out.write(head + plain(style[:style.index("\n.")], rules + [".paper { fill: var(--faint); }"]) +
              f'</style><defs><rect id="c"{usual}/></defs><rect class="paper" width="{side:g}" height="{side:g}"/>' +
              drawn.replace("</svg>", "</g></svg>"))


def main():
    html, svg, folder = sys.argv[1:]
    with open(folder + "/report.svg", "w", encoding="utf-8") as out:
        report(html, out)
    with open(folder + "/episode.svg", "w", encoding="utf-8") as out:
        episode(svg, out)


main()
