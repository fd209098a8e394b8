// Plays each film of the page: bodies move between the moments that were recorded. Buttons, and where the film is all
// of the page: Space plays and pauses, arrows step; wheel, two fingers and the keys + - 0 zoom; #t=120 in the address
// begins (paused) at 120 s. A small film plays while it is seen, again and again. Without this the page shows the first
// moment.
for (const root of document.querySelectorAll(".film")) {
  const part = name => root.querySelector("." + name), small = root.classList.contains("small");
  const film = JSON.parse(part("film-data").textContent), frame = film.frame, last = frame.length - 1;
  const svg = root.querySelector("figure svg.view"), play = part("play");
  const slider = part("slider"), speed = part("speed"), now = svg.querySelector(".now");
  const make = (name, css, parent) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    e.setAttribute("class", css);
    return parent.appendChild(e);
  };
  now.textContent = "";
  const bodies = make("g", "bodies", now), shape = new Map();
  const marks = film.mark.map(() => make("path", "mark", now)), rings = make("g", "rings", now);
  function placeMarks() { // around the middle of their group, large enough to be seen
    const l = Math.min(3, larger);
    film.mark.forEach(([x, y, u, v, mx, my], k) => marks[k].setAttribute("d",
      `M${mx + (x - mx) * l} ${my + (y - my) * l}L${mx + (u - mx) * l} ${my + (v - my) * l}`));
  }
  const PER = 8; // numbers of a body: id, x, y, degrees, colour, mark, length, width
  const index = frame.map(() => null);
  const placesOf = i => index[i] ??= new Map(frame[i].v.flatMap((id, k) => k % PER ? [] : [[id, k]]));
  const clock = s => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;
  const {width: wide, height: high} = svg.viewBox.baseVal, closest = Math.max(4, wide / 60); // 60 m across, or a quarter
  const view = {x: 0, y: 0, zoom: 1};
  let at = 0, playing = false, before = 0, shown = -1, larger = 1;

  function elementOf(id, v, k) {
    let e = shape.get(id);
    if (!e) {
      e = make("rect", "body", bodies);
      const [l, w] = [v[k + 6] / 10, v[k + 7] / 10];
      for (const [name, value] of [["x", -l], ["y", -w / 2], ["width", l], ["height", w], ["rx", w / 4]])
        e.setAttribute(name, value);
      shape.set(id, e);
    }
    return e;
  }

  function ring(x, y, r) { // around what the shield changed
    const e = make("circle", "changed", rings);
    for (const [name, value] of [["cx", x], ["cy", y], ["r", r]]) e.setAttribute(name, value);
  }

  function showMoment(i) { // what holds until the next moment
    const f = frame[i], states = ["red", "yellow", "green", "yield"];
    let risky = 0, changed = f.c.length;
    placeMarks();
    marks.forEach((e, k) => e.setAttribute("class", "mark " + states[f.s[k]]));
    rings.textContent = "";
    for (const [x, y, r] of f.c) ring(x, y, r + 4 * (larger - 1));
    for (const [id, e] of shape) if (!placesOf(i).has(id)) { e.remove(); shape.delete(id); }
    for (let k = 0; k < f.v.length; k += PER) {
      if (f.v[k + 5] > 1) {
        const turn = f.v[k + 3] * Math.PI / 180, back = f.v[k + 6] / 20 * larger;
        ring(f.v[k + 1] / 10 - back * Math.cos(turn), f.v[k + 2] / 10 - back * Math.sin(turn), 5 * larger);
        changed++;
      }
      elementOf(f.v[k], f.v, k).setAttribute("class", `body r${f.v[k + 4]}${f.v[k + 5] ? " agent" : ""}`);
      risky += f.v[k + 4] > 1 && f.v[k + 4] < 4; // 4: not known
    }
    part("numbers").textContent = `${f.v.length / PER} ${film.bodies}` + (film.risk ? `, ${risky} at risk` : "") +
      (f.d === undefined ? "" : `, mean delay so far ${f.d.toFixed(1)} s`) +
      (changed ? `, the shield changed ${changed}` : "");
    shown = i;
  }

  function show() {
    const i = Math.min(last, Math.floor(at)), share = at - i, v = frame[i].v;
    if (i !== shown) showMoment(i);
    const next = i < last && share > 0 ? frame[i + 1].v : null;
    for (let k = 0; k < v.length; k += PER) {
      let [x, y, turn] = [v[k + 1], v[k + 2], v[k + 3]];
      const j = next ? placesOf(i + 1).get(v[k]) : undefined;
      if (j !== undefined) {
        x += share * (next[j + 1] - x);
        y += share * (next[j + 2] - y);
        turn += share * (((next[j + 3] - turn) % 360 + 540) % 360 - 180);
      }
      shape.get(v[k]).setAttribute("transform", `translate(${x / 10} ${y / 10}) rotate(${turn}) scale(${larger})`);
    }
    const t = i < last ? frame[i].t + share * (frame[i + 1].t - frame[i].t) : frame[i].t;
    part("time").textContent = `${clock(t)} of ${clock(frame[last].t)}`;
    slider.value = at;
  }

  function tick(stamp) {
    if (!playing) return;
    const i = Math.min(last - 1, Math.floor(at)), long = last > 0 ? frame[i + 1].t - frame[i].t : 1;
    at += Math.min(100, Math.max(0, stamp - before)) / 1000 * Number(speed.value) / long;
    before = stamp;
    if (at >= last && small) at = 0;
    if (at >= last) { at = last; set(false); }
    show();
    requestAnimationFrame(tick);
  }
  function set(on) {
    playing = on && last > 0;
    play.textContent = playing ? "Pause" : "Play";
    if (playing) {
      at = at >= last ? 0 : at;
      before = performance.now();
      requestAnimationFrame(tick);
    }
  }
  // What is at x, y (in metres of the picture) stays where it is on the screen.
  function zoom(to, x, y) {
    to = Math.min(closest, Math.max(1, to));
    move(x - (x - view.x) * view.zoom / to, y - (y - view.y) * view.zoom / to, to);
  }
  function move(x, y, to = view.zoom) {
    view.zoom = to;
    view.x = Math.min(wide - wide / to, Math.max(0, x));
    view.y = Math.min(high - high / to, Math.max(0, y));
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${wide / to} ${high / to}`);
    svg.style.touchAction = to > 1 ? "none" : "pan-y";
    larger = Math.min(8, Math.max(1, 2.8 / svg.getScreenCTM().a)); // a body of 5 m has 14 px at least
    shown = -1;
    if (shape.size) show();
  }
  const middle = to => zoom(to, view.x + wide / view.zoom / 2, view.y + high / view.zoom / 2);
  const place = e => new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const closer = () => middle(1.5 * view.zoom), farther = () => middle(view.zoom / 1.5), whole = () => move(0, 0, 1);
  for (const [id, does] of Object.entries({closer, farther, whole}))
    part(id).addEventListener("click", does);
  svg.addEventListener("wheel", e => {
    if (small) return; // the page scrolls
    if (e.deltaY > 0 && view.zoom === 1) return; // nothing to zoom out of: the page scrolls
    e.preventDefault();
    const p = place(e);
    zoom(view.zoom * Math.exp(-0.002 * e.deltaY * (e.deltaMode ? 16 : 1)), p.x, p.y);
  }, {passive: false});
  const finger = new Map(); // what is pressed, and where it was last
  const spread = ([a, b]) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
  svg.addEventListener("pointerdown", e => { finger.set(e.pointerId, e); svg.setPointerCapture(e.pointerId); });
  svg.addEventListener("pointermove", e => {
    if (!finger.has(e.pointerId)) return;
    const from = place(finger.get(e.pointerId)), to = place(e), was = [...finger.values()];
    finger.set(e.pointerId, e);
    const is = [...finger.values()];
    if (is.length === 1) move(view.x + from.x - to.x, view.y + from.y - to.y);
    if (is.length !== 2) return;
    const p = place({clientX: (is[0].clientX + is[1].clientX) / 2, clientY: (is[0].clientY + is[1].clientY) / 2});
    zoom(view.zoom * spread(is) / Math.max(1, spread(was)), p.x, p.y);
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, e => finger.delete(e.pointerId));
  addEventListener("resize", () => move(view.x, view.y));
  const key = {
    "+": closer, "=": closer, "-": farther, "0": whole,
    ArrowLeft: () => move(view.x - wide / view.zoom / 8, view.y), ArrowRight: () => move(view.x + wide / view.zoom / 8, view.y),
    ArrowUp: () => move(view.x, view.y - high / view.zoom / 8), ArrowDown: () => move(view.x, view.y + high / view.zoom / 8)
  };
  const jump = to => { at = Math.min(last, Math.max(0, to)); show(); };
  let stopped = false; // by a click: a small film does not begin again by itself
  play.addEventListener("click", () => { stopped = playing; set(!playing); });
  slider.addEventListener("input", () => { stopped = true; set(false); jump(Number(slider.value)); });
  document.addEventListener("keydown", e => {
    if (small) return;
    if (key[e.key] && !e.ctrlKey && !e.metaKey && !e.altKey && !e.target.matches("select") && (e.shiftKey || !e.key.startsWith("Arrow"))) {
      e.preventDefault();
      key[e.key]();
      return;
    }
    if (e.target.matches("button, select") && e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
    if (e.key === " ") { e.preventDefault(); set(!playing); }
    if (e.target !== slider && e.key === "ArrowRight") { set(false); jump(Math.floor(at) + 1); }
    if (e.target !== slider && e.key === "ArrowLeft") { set(false); jump(Math.ceil(at) - 1); }
  });
  const rates = [...speed.options].map(o => Number(o.value)), wanted = (frame[last].t - frame[0].t) / (small ? 20 : 60);
  speed.value = rates.find(r => r >= wanted) ?? rates.at(-1);
  part("player").hidden = false;
  whole();
  const asked = small ? null : /t=([\d.]+)/.exec(location.hash);
  jump(asked ? Math.max(0, frame.findLastIndex(f => f.t <= Number(asked[1]))) : 0);
  const moves = !asked && !matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (!small) set(moves);
  else if (moves) new IntersectionObserver(([e]) => set(e.isIntersecting && !stopped)).observe(svg);
}
