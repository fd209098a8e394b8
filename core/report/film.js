// Plays the episode: vehicles move between the moments that were recorded. Space plays and pauses, arrows step, #t=120 in
// the address begins (paused) at 120 s. Without this the page shows the first moment.
{
  const film = JSON.parse(document.getElementById("film").textContent), frame = film.frame, last = frame.length - 1;
  const svg = document.querySelector("svg.street"), play = document.getElementById("play");
  const slider = document.getElementById("at"), speed = document.getElementById("speed"), now = svg.querySelector(".now");
  const make = (name, css, parent) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    e.setAttribute("class", css);
    return parent.appendChild(e);
  };
  now.textContent = "";
  const lights = film.light.map(([x, y, u, v]) => {
    const e = make("path", "light", now);
    e.setAttribute("d", `M${x} ${y}L${u} ${v}`);
    return e;
  });
  const cars = make("g", "cars", now), rings = make("g", "rings", now), car = new Map();
  const PER = 8; // numbers of a vehicle: id, x, y, degrees, colour, mark, length, width
  const index = frame.map(() => null);
  const placesOf = i => index[i] ??= new Map(frame[i].v.flatMap((id, k) => k % PER ? [] : [[id, k]]));
  const clock = s => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;
  const wide = svg.viewBox.baseVal.width, larger = Math.min(5, Math.max(1, 1.8 * wide / svg.clientWidth)); // 9 px at least
  let at = 0, playing = false, before = 0, shown = -1;

  function carOf(id, v, k) {
    let e = car.get(id);
    if (!e) {
      e = make("rect", "car", cars);
      const [l, w] = [v[k + 6] / 10 * larger, v[k + 7] / 10 * larger];
      for (const [name, value] of [["x", -l], ["y", -w / 2], ["width", l], ["height", w], ["rx", w / 4]])
        e.setAttribute(name, value);
      car.set(id, e);
    }
    return e;
  }

  function showMoment(i) { // what holds until the next moment
    const f = frame[i], states = ["red", "yellow", "green", "yield"];
    let risky = 0, changed = f.c.length;
    lights.forEach((e, k) => e.setAttribute("class", "light " + states[f.s[k]]));
    rings.textContent = "";
    for (const [x, y, r] of f.c) {
      const e = make("circle", "changed", rings);
      for (const [name, value] of [["cx", x], ["cy", y], ["r", r]]) e.setAttribute(name, value);
    }
    for (const [id, e] of car) if (!placesOf(i).has(id)) { e.remove(); car.delete(id); }
    for (let k = 0; k < f.v.length; k += PER) {
      carOf(f.v[k], f.v, k).setAttribute("class", `car r${f.v[k + 4]}${f.v[k + 5] ? " agent" : ""}`);
      risky += f.v[k + 4] > 1 && f.v[k + 4] < 4; // 4: not known
    }
    document.getElementById("told").textContent = `${f.v.length / PER} vehicles, ${risky} at risk` +
      (changed ? `, the shield changed ${changed}` : "");
    shown = i;
  }

  function show() {
    const i = Math.min(last, Math.floor(at)), part = at - i, v = frame[i].v;
    if (i !== shown) showMoment(i);
    const next = i < last && part > 0 ? frame[i + 1].v : null;
    for (let k = 0; k < v.length; k += PER) {
      let [x, y, turn] = [v[k + 1], v[k + 2], v[k + 3]];
      const j = next ? placesOf(i + 1).get(v[k]) : undefined;
      if (j !== undefined) {
        x += part * (next[j + 1] - x);
        y += part * (next[j + 2] - y);
        turn += part * (((next[j + 3] - turn) % 360 + 540) % 360 - 180);
      }
      car.get(v[k]).setAttribute("transform", `translate(${x / 10} ${y / 10}) rotate(${turn})`);
    }
    const t = i < last ? frame[i].t + part * (frame[i + 1].t - frame[i].t) : frame[i].t;
    document.getElementById("time").textContent = `${clock(t)} of ${clock(frame[last].t)}`;
    slider.value = at;
  }

  function tick(stamp) {
    if (!playing) return;
    const i = Math.min(last - 1, Math.floor(at)), long = last > 0 ? frame[i + 1].t - frame[i].t : 1;
    at += Math.min(100, Math.max(0, stamp - before)) / 1000 * Number(speed.value) / long;
    before = stamp;
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
  const jump = to => { at = Math.min(last, Math.max(0, to)); show(); };
  play.addEventListener("click", () => set(!playing));
  slider.addEventListener("input", () => { set(false); jump(Number(slider.value)); });
  document.addEventListener("keydown", e => {
    if (e.target.matches("button, select") && e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
    if (e.key === " ") { e.preventDefault(); set(!playing); }
    if (e.target !== slider && e.key === "ArrowRight") { set(false); jump(Math.floor(at) + 1); }
    if (e.target !== slider && e.key === "ArrowLeft") { set(false); jump(Math.ceil(at) - 1); }
  });
  const rates = [...speed.options].map(o => Number(o.value)), wanted = frame[last].t / 60;
  speed.value = rates.find(r => r >= wanted) ?? rates.at(-1);
  document.querySelector(".player").hidden = false;
  const asked = /t=([\d.]+)/.exec(location.hash);
  jump(asked ? Math.max(0, frame.findLastIndex(f => f.t <= Number(asked[1]))) : 0);
  set(!asked && !matchMedia("(prefers-reduced-motion: reduce)").matches);
}
