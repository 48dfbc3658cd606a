"""The picture at the top of the README, from a release of the demo: people before and after, the best guess.

Run: ``pairveil demo --seed 0 --out demo-out`` and then
``python -m tools.readme_picture demo-out docs/figures/demo.svg``.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from pairveil.files import write_file
from pairveil.report.charts import Chart, hundred_guesses, scatter
from pairveil.report.page import environment
from pairveil.report.summaries import read_release
from pairveil.report.words import number

STYLE = """
text { font: 15px system-ui, 'Segoe UI', Roboto, Arial, sans-serif; fill: #16212c; }
.title { font-size: 19px; font-weight: 650; } .muted { fill: #4d5b69; }
.card { fill: #ffffff; stroke: #d9e0e7; } .frame { fill: none; stroke: none; }
.point { stroke: #ffffff; stroke-width: .8; } .group0 { fill: #0b5f6b; } .group1 { fill: #a8480a; }
.head.coin { fill: #4f8f99; } .head.more { fill: #a8480a; } .head.wrong { fill: none; stroke: #4d5b69; }
"""
PAGE = """{% from "report/drawing.html" import shape %}
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 330" role="img" aria-label="{{ alt }}">
<style>{{ style }}</style>
<rect class="card" x="1" y="1" width="998" height="328" rx="12"/>
{% for x, title, below, chart, scale in panels %}
<g transform="translate({{ x }} 0)">
<text class="title" x="0" y="36">{{ title }}</text>
<g transform="translate(0 {{ 50 if chart.height > 200 else 70 }}) scale({{ scale }})">
{% for one in chart.shapes %}{{ shape(one) }}{% endfor %}

</g>
{% for line in below %}
<text class="muted" x="0" y="{{ 276 + 22 * loop.index0 }}">{{ line }}</text>
{% endfor %}
</g>
{% endfor %}
</svg>
"""


def picture(folder: Path) -> str:
    """The SVG of one release that came with public points and a public curve."""
    data = read_release(folder)
    points, curve, certificate = data.summary.points, data.summary.utility, data.certificate
    if points is None or curve is None or curve.this_fit is None or certificate is None:
        raise SystemExit("this release has no public points: use one of `pairveil demo`")
    right = math.ceil(100 * certificate.best_guess() - 1e-9)  # of a demo, whose noise may be seeded
    plain, ours = curve.euclidean or 0.5, curve.this_fit.score

    def told(score: float) -> list[str]:
        return ["like patients closer than unlike ones:", f"{100 * score:.0f} times in 100"]

    panels: list[tuple[float, str, list[str], Chart, float]] = [
        (26, "Plain distance", told(plain), scatter(points, "before"), 0.62),
        (346, f"Learned at epsilon {number(certificate.epsilon)}", told(ours),
         scatter(points, "after"), 0.62),
        (680, f"Best guess: {right} of 100 right",
         ["green: what a coin gets right,", "orange: what the release adds, at most"],
         hundred_guesses(right), 0.7),
    ]  # fmt: skip
    alt = (
        f"Patients before and after the metric, {100 * plain:.0f} and {100 * ours:.0f} of 100 in the right "
        f"order; of 100 guesses about a pair at most {right} are right, a coin gets 50."
    )
    from markupsafe import Markup

    template = environment("report").from_string(PAGE)
    return template.render(panels=panels, alt=alt, style=Markup(STYLE)).strip() + "\n"


if __name__ == "__main__":
    write_file(sys.argv[2], picture(Path(sys.argv[1])))
