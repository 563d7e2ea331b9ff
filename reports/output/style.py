"""The style sheet of the report page, light and dark, on screen and on paper.

Owns colours and spacing; nothing is fetched. The series colours differ in lightness as well as in
hue, so that neighbours stay apart for colour-blind readers and in print.
"""

SERIES_LIGHT = (
    "#2a78d6",
    "#1baf7a",
    "#eda100",
    "#008300",
    "#4a3aa7",
    "#e34948",
    "#e87ba4",
    "#8a8a86",
)
SERIES_DARK = (
    "#3987e5",
    "#199e70",
    "#c98500",
    "#2ea043",
    "#9085e9",
    "#e66767",
    "#d55181",
    "#8a8a86",
)

_RULES = """
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 48px }
h1 { font-size: 28px; margin: 0; letter-spacing: -.01em }
h2 { font-size: 16px; margin: 0 0 12px }
header p { margin: 4px 0 20px; color: var(--soft) }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px; margin: 0 0 16px }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: 20px }
.tile { display: flex; flex-direction: column }
.label, .note { color: var(--soft); font-size: 13px }
.figure { font-size: 24px; font-weight: 600; letter-spacing: -.01em }
.badge { border: 1px solid; border-radius: 99px; padding: 2px 10px; margin-left: 8px;
  font-size: 13px; font-weight: 600; white-space: nowrap }
.good, .exact, .open { color: var(--good) }
.bad, .gap, .conflict, .difference, .log_incomplete { color: var(--bad) }
.state { font-weight: 600 }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: 14px;
  font-variant-numeric: tabular-nums }
th { text-align: left; color: var(--soft); font-weight: 500 }
th, td { padding: 6px 14px 6px 0; border-bottom: 1px solid var(--line); white-space: nowrap }
.n { text-align: right; padding-right: 0; padding-left: 14px }
tbody:last-child tr:last-child td { border-bottom: 0 }
tfoot td { font-weight: 600; border-bottom: 0 }
svg { width: 100%; height: auto; display: block }
.axis { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums }
.grid { stroke: var(--grid) }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; list-style: none; padding: 0;
  margin: 0 0 10px }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 7px }
ul, p { color: var(--soft); font-size: 13px }
section > p:last-child, section > ul:last-child { margin-bottom: 0 }
td .badge { margin-left: 0 }
.words { white-space: normal; min-width: 220px }
.small { color: var(--soft); font-size: 12px; line-height: 1.4 }
.total td { font-size: 16px }
.plain { list-style: none; padding: 0; margin: 0 0 14px }
.plain li { padding: 5px 0; line-height: 1.6 }
.plain .badge { margin-left: 0 }
footer code { overflow-wrap: anywhere }
@media print { :root { color-scheme: light } body { background: #fff }
  section { break-inside: avoid } }
"""

_LIGHT = (
    "--page: #f7f7f5; --card: #fff; --ink: #1b1b19; --soft: #62625d; --line: #e3e2dd; "
    "--grid: #e9e8e3; --good: #0a7d33; --bad: #b3261e"
)
_DARK = (
    "--page: #141413; --card: #1d1d1b; --ink: #ecebe6; --soft: #a3a29b; --line: #34342f; "
    "--grid: #2b2b28; --good: #4cc38a; --bad: #ff8a80"
)


def sheet() -> str:
    """The whole style sheet."""
    light, dark = _series(SERIES_LIGHT), _series(SERIES_DARK)
    classes = "".join(
        f"rect.s{number} {{ fill: var(--s{number}) }}\n"
        f".key.s{number} {{ background: var(--s{number}) }}\n"
        for number in range(len(SERIES_LIGHT))
    )
    return (
        f"\n:root {{ color-scheme: light dark; {_LIGHT}; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_DARK}; {dark} }} }}"
        f"{_RULES}{classes}"
    )


def _series(colours: tuple[str, ...]) -> str:
    return "; ".join(f"--s{number}: {colour}" for number, colour in enumerate(colours))
