// Values under the pointer, in place of the last ones. The page is complete without this.
for (const chart of document.querySelectorAll("svg.chart")) {
  const now = chart.parentNode.querySelector(".now"), last = now.innerHTML, line = chart.querySelector(".at");
  const [low, high, from, to] = chart.dataset.scale.split(" ").map(Number);
  const curves = [...chart.querySelectorAll(".curve")].map(c => ({
    css: c.getAttribute("class").split(" ").pop(), is_ref: c.classList.contains("ref"),
    x: c.dataset.x.split(" ").map(Number), y: c.dataset.y.split(" ").map(Number)
  }));
  const nearest = (list, v) => list.reduce((best, x, i) => Math.abs(list[best] - v) > Math.abs(x - v) ? i : best, 0);
  const text = v => String(Number(v.toPrecision(4))).replace("-", "\u2212");
  const tell = (css, words) => {
    const e = document.createElement("em");
    e.className = css;
    e.textContent = words;
    now.append(e);
  };
  chart.addEventListener("pointermove", event => {
    const box = chart.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * chart.viewBox.baseVal.width;
    const x = low + (high - low) * Math.min(1, Math.max(0, (at - from) / (to - from)));
    const first = curves[0].x[nearest(curves[0].x, x)];
    const place = from + (first - low) / (high - low) * (to - from);
    line.setAttribute("transform", "translate(" + place + ")");
    line.style.visibility = "visible";
    now.textContent = "";
    tell("where", chart.dataset.xName + " " + first);
    for (const c of curves) tell(c.is_ref ? "ref" : c.css, text(c.y[nearest(c.x, x)]));
  });
  chart.addEventListener("pointerleave", () => {
    line.style.visibility = "hidden";
    now.innerHTML = last;
  });
}
