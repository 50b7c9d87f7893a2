// Draws one plotly figure and keeps it: new data goes into the same drawing, so zoom, hidden series and the
// hover stay. (st.plotly_chart makes a new drawing whenever the data change.)

const WAIT_MS = 50
const PATIENCE_MS = 30000

async function library() {
  for (let waited = 0; !window.Plotly; waited += WAIT_MS) {
    if (waited > PATIENCE_MS) throw new Error("The drawing library has not arrived; reload the page.")
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS))
  }
  return window.Plotly
}

// Plotly finds traces again by a selector made of their uid, which the "/" and ":" of our names would break.
function withPlainUids(figure) {
  for (const trace of figure.data) {
    trace.meta = trace.uid
    trace.uid = trace.uid?.replace(/[^a-z0-9-]/gi, (sign) => `_${sign.charCodeAt(0).toString(16)}`)
  }
  return figure
}

const CONFIG = {
  displaylogo: false,
  doubleClick: "reset",
  showTips: false,
  modeBarButtons: [["toImage", "resetScale2d"]],
}

export default async function ({ data, parentElement, setTriggerValue }) {
  let place = parentElement.querySelector(".grpo-plot")
  if (!place) {
    place = document.createElement("div")
    place.className = "grpo-plot"
    parentElement.appendChild(place)
  }
  place.wanted = data.figure
  place.pick = (picked) => setTriggerValue("pick", picked)
  const Plotly = await library()
  if (place.drawn !== place.wanted) {
    place.drawn = place.wanted
    const figure = withPlainUids(JSON.parse(place.wanted))
    await Plotly.react(place, figure.data, figure.layout, CONFIG)
  }
  if (!place.listens) {
    place.listens = true
    // A figure drawn before its card has its final width would stay too wide: plotly itself watches the window only.
    place.watch = new ResizeObserver(() => place.clientWidth && Plotly.Plots.resize(place))
    place.watch.observe(place)
    place.on("plotly_click", ({ points }) => {
      const point = points.find(({ customdata }) => customdata !== undefined && customdata !== null)
      if (point) place.pick({ series: point.data.meta, value: point.customdata })
    })
  }
  return () => {
    place.watch.disconnect()
    Plotly.purge(place)
  }
}
