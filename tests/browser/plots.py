"""What the figures on a page show, read from plotly in the browser."""

from typing import Any, cast

from playwright.sync_api import Page

# A trace is known by its metric, or by its run, which plot.js keeps in `meta`. Its packed numbers are decoded in
# _fullData.
_CURVE = """([uid, key]) => {
  for (const place of document.querySelectorAll('.grpo-plot')) {
    const trace = (place._fullData || []).find((each) => each.meta === uid)
    if (trace) return Array.from(trace[key] || [])
  }
  return []
}"""
_DRAWN = """(uids) => [...document.querySelectorAll('.grpo-plot')].some((place) => (place.calcdata || []).some(
  (points) => (!uids.length || uids.includes(points[0].trace.meta))
    && points.some(({ x, y }) => isFinite(x) && isFinite(y))
))"""
_PLACE = """([uid, step]) => {
  for (const place of document.querySelectorAll('.grpo-plot')) {
    const trace = (place._fullData || []).find((each) => each.meta === uid)
    if (!trace) continue
    place.scrollIntoView({ block: 'center' })
    const box = place.getBoundingClientRect()
    const { xaxis, yaxis } = place._fullLayout
    const index = Array.from(trace.customdata).indexOf(step)
    return [
      box.left + xaxis._offset + xaxis.d2p(trace.x[index]),
      box.top + yaxis._offset + yaxis.d2p(trace.y[index]),
    ]
  }
}"""
_SHEET = """(uid) => {
  for (const place of document.querySelectorAll('.grpo-plot')) {
    if (!(place._fullData || []).some((each) => each.meta === uid)) continue
    place.scrollIntoView({ block: 'center' })
    const box = place.getBoundingClientRect()
    const { xaxis, yaxis } = place._fullLayout
    return [box.left + xaxis._offset, box.top + yaxis._offset, xaxis._length, yaxis._length]
  }
}"""
_RANGE = """(uid) => {
  for (const place of document.querySelectorAll('.grpo-plot')) {
    if ((place._fullData || []).some((each) => each.meta === uid)) return place._fullLayout.xaxis.range
  }
}"""
_STROKES = """() => [...document.querySelectorAll('.grpo-plot')].map((place) =>
  [...place.querySelectorAll('.scatterlayer .trace path.js-line')].map((line) => getComputedStyle(line).stroke)
)"""
_VISIBLE = """(uid) => {
  for (const place of document.querySelectorAll('.grpo-plot')) {
    const trace = (place._fullData || []).find((each) => each.meta === uid)
    if (trace) return trace.visible
  }
}"""


def curve(page: Page, uid: str) -> list[float]:
    """Return the values of a trace, in the order of its steps."""
    return cast(list[float], page.evaluate(_CURVE, [uid, "y"]))


def steps(page: Page, uid: str) -> list[int]:
    """Return the steps of a trace."""
    return cast(list[int], page.evaluate(_CURVE, [uid, "customdata"]))


def wait_for_points(page: Page, uid: str, count: int, seconds: float) -> None:
    """Wait until a trace has so many points."""
    expression = f"(given) => ({_CURVE})(given).length >= given[2]"
    page.wait_for_function(expression, arg=[uid, "y", count], timeout=1000 * seconds, polling=100)


def wait_for_drawn(page: Page, *uids: str, seconds: float) -> None:
    """Wait until a point of one of these traces, or of any, is drawn."""
    page.wait_for_function(_DRAWN, arg=list(uids), timeout=1000 * seconds, polling=50)


def wait_for_figures(page: Page, count: int, seconds: float = 30) -> None:
    """Wait until so many figures are drawn."""
    expression = "(count) => document.querySelectorAll('.grpo-plot .main-svg .bglayer').length >= count"
    page.wait_for_function(expression, arg=count, timeout=1000 * seconds, polling=100)


def place_of(page: Page, uid: str, step: int) -> tuple[float, float]:
    """Return where in the window the point of a step is, after scrolling to its figure."""
    x, y = page.evaluate(_PLACE, [uid, step])
    return x, y


def sheet_of(page: Page, uid: str) -> tuple[float, float, float, float]:
    """Return left, top, width and height of the area in which a trace is drawn, after scrolling to it."""
    left, top, width, height = page.evaluate(_SHEET, uid)
    return left, top, width, height


def x_range(page: Page, uid: str) -> list[float]:
    """Return the range of the x axis under a trace."""
    return cast(list[float], page.evaluate(_RANGE, uid))


def visibility(page: Page, uid: str) -> Any:
    """Return plotly's `visible` of a trace: True, or "legendonly" where it was hidden by a click in the legend."""
    return page.evaluate(_VISIBLE, uid)


def strokes(page: Page) -> list[list[str]]:
    """Return the colours of the lines of each figure, as the browser paints them."""
    return cast(list[list[str]], page.evaluate(_STROKES))
