// Charts of the last minutes: one figure each, a legend that says the newest values, or those under the pointer.

const HEIGHT = 100;

class Chart {
  // `lines` are {name, label, kind, filled}; those that are stacked lie on the ones before them.
  constructor(title, lines, format, { stacked = false, main = null } = {}) {
    Object.assign(this, { title, lines, format, stacked, main, at: null });
    this.caption = make("figcaption");
    this.svg = draw("svg", { preserveAspectRatio: "none", role: "img" });
    this.most = make("span", { class: "most", "aria-hidden": "true" });
    this.since = make("span");
    this.figure = make("figure", { class: "card" }, this.caption, make("div", { class: "plot" }, this.svg, this.most),
      make("div", { class: "times", "aria-hidden": "true" }, this.since, make("span", null, "now")));
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => { this.at = null; this.paint(); });
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    this.at = Math.round(((event.clientX - box.left) / box.width) * (this.series.samples - 1));
    this.paint();
  }

  update(series) { this.series = series; this.paint(); }

  // Values of each line by place from the left; the newest is the last place, and places before the first sample are null.
  columns() {
    const missing = this.series.samples - this.series[this.lines[0].name].length;
    return this.lines.map((line) => [...Array(missing).fill(null), ...this.series[line.name]]);
  }

  paint() {
    const columns = this.columns();
    const last = this.series.samples - 1;
    const place = this.at === null ? last : Math.min(Math.max(this.at, 0), last);
    const tops = this.stacked ? columns.map((_, k) => columns[0].map((__, i) => stack(columns, k, i))) : columns;
    const most = Math.max(0, ...tops.flat().filter((value) => value !== null));
    const scale = (value) => HEIGHT - (value / (most || 1)) * (HEIGHT - 8);
    this.svg.setAttribute("viewBox", `0 0 ${last} ${HEIGHT}`);
    const shapes = [HEIGHT, HEIGHT / 2 + 4, 8].map((y) => draw("path", { class: "grid", d: `M0 ${y}H${last}` }));
    [...this.lines.keys()].reverse().forEach((k) => {
      const { kind, filled } = this.lines[k];
      if (filled) shapes.push(draw("path", { class: `fill ${kind}`, d: area(tops[k], scale) }));
      shapes.push(draw("path", { class: kind, d: line(tops[k], scale) }));
    });
    if (this.at !== null) shapes.push(draw("path", { class: "cursor", d: `M${place} 0V${HEIGHT}` }));
    show(this.svg, shapes);
    const values = columns.map((column) => column[place]);
    const read = values.map((value, k) => `${this.lines[k].label} ${this.format(value)}`);
    const ago = this.at === null ? "now" : `${duration((last - place) * this.series.step_s)} ago`;
    this.svg.setAttribute("aria-label", `${this.title}, ${ago}: ${read.join(", ")}; most ${this.format(most)}`);
    say(this.most, most ? `most ${this.format(most)}` : "");
    say(this.since, `${duration(this.series.samples * this.series.step_s)} ago`);
    const headline = this.main === "sum" ? values.reduce((sum, value) => sum + (value || 0), 0) : values[0];
    show(this.caption, [
      make("span", { class: "title" }, this.at === null ? this.title : `${this.title}, ${ago}`),
      make("span", { class: "value" }, this.format(headline)),
      make("span", { class: "keys" }, ...this.lines.map((one, k) => make("span", { class: `key ${one.kind}` }, `${one.label} ${this.format(values[k])}`))),
    ]);
  }
}

function stack(columns, line, place) {
  if (columns[line][place] === null) return null;
  let sum = 0;
  for (let k = 0; k <= line; k += 1) sum += columns[k][place] || 0;
  return sum;
}

function runs(values) {
  const found = [];
  values.forEach((value, x) => {
    if (value === null) return;
    if (x && values[x - 1] !== null) found[found.length - 1].push([x, value]); else found.push([[x, value]]);
  });
  return found;
}

// A lone sample is drawn as a short stroke: a point would not be seen.
function line(values, scale) {
  return runs(values).map((run) => {
    const [x, value] = run[0];
    const rest = run.slice(1).map(([right, one]) => `L${right} ${scale(one).toFixed(2)}`).join("") || `h.01`;
    return `M${x} ${scale(value).toFixed(2)}${rest}`;
  }).join("");
}

function area(values, scale) {
  return runs(values).map((run) => {
    const path = run.map(([x, value]) => `L${x} ${scale(value).toFixed(2)}`).join("");
    return `M${run[0][0]} ${HEIGHT}${path}L${run[run.length - 1][0]} ${HEIGHT}Z`;
  }).join("");
}

const CHARTS = [
  new Chart("Requests a second", [
    { name: "requests", label: "all", kind: "first", filled: true }, { name: "errors", label: "failed", kind: "wrong" },
  ], number),
  new Chart("Latency", [
    { name: "p50_ms", label: "median", kind: "first" }, { name: "p99_ms", label: "99 of 100 within", kind: "second" },
  ], milliseconds),
  new Chart("Memory", [
    { name: "workers_bytes", label: "workers", kind: "first", filled: true },
    { name: "front_end_bytes", label: "front end", kind: "second", filled: true },
  ], (value) => bytes(value || 0), { stacked: true, main: "sum" }),
];
find("charts").append(...CHARTS.map((chart) => chart.figure));
