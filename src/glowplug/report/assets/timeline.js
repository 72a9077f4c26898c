// The timeline: where each lane's spans lie, which are in view, and painting them. explore.js holds the gestures.

const ROW = 18;
const HEAD = 24;
const LONGEST_VIEW = 520;
const SHORTEST_NS = 2000;

class Timeline {
  constructor(data) {
    this.data = data;
    this.from = 0;
    this.to = Math.max(1, data.wall);
    this.hiddenPhases = new Set();
    this.shortest = 0;
    this.found = null; // a Set of span numbers while a search or a finding is shown
    this.selected = -1;
    this.hovered = -1;
    this.chart = byId('chart');
    this.overview = byId('overview');
    this.axis = byId('axis');
    this.scroller = byId('scroller');
    this.section = byId('timeline');
    this.wanted = false;
    this.layOut();
    this.readTheme();
    this.resize();
  }

  // Spans of one depth on one thread never overlap, so each row is sorted by start and by end at once.
  layOut() {
    const { data } = this;
    this.lanes = data.lanes.map(([pid, thread]) => ({ pid, thread, rows: [], folded: false, title: this.laneTitle(pid, thread) }));
    for (let i = 0; i < data.count; i += 1) {
      const rows = this.lanes[data.lane[i]].rows;
      const depth = data.depth[i];
      while (rows.length <= depth) rows.push([]);
      rows[depth].push(i);
    }
    this.lanes.sort((a, b) => (b.pid === data.root) - (a.pid === data.root) || a.pid - b.pid || (b.thread === b.pid) - (a.thread === a.pid) || a.thread - b.thread);
    this.placeLanes();
  }

  laneTitle(pid, thread) {
    const process = this.data.processes.find((entry) => entry.pid === pid);
    const command = process ? process.command : 'process';
    if (thread === pid) return `${command}  ·  main thread, pid ${pid}`;
    const first = this.data.spans.lane.findIndex((lane) => this.data.lanes[lane][0] === pid && this.data.lanes[lane][1] === thread);
    const name = first >= 0 && this.data.kind(first) === 'thread' ? this.data.name(first) : 'thread';
    return `${name}  ·  thread ${thread} of pid ${pid}`;
  }

  placeLanes() {
    let top = 0;
    for (const lane of this.lanes) {
      lane.top = top;
      top += HEAD + (lane.folded ? 0 : lane.rows.length * ROW) + 6;
    }
    this.height = Math.max(top, 60);
  }

  readTheme() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    this.theme = { ink: value('--ink'), soft: value('--soft'), faint: value('--faint'), line: value('--line'), sunken: value('--sunken'), surface: value('--surface'), accent: value('--accent'), onPhase: value('--on-phase'), sans: value('--sans') };
    this.colors = this.data.phases.map(([, , color]) => color);
  }

  resize(all = false) {
    this.width = this.scroller.clientWidth || 900;
    this.viewHeight = all ? this.height : Math.min(this.height, LONGEST_VIEW);
    byId('spacer').style.height = `${this.height}px`;
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    for (const [canvas, height] of [[this.chart, this.viewHeight], [this.axis, 24], [this.overview, 46]]) {
      canvas.width = Math.round(this.width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
      canvas.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.paintOverviewBase();
    this.paint();
  }

  // --- view ---------------------------------------------------------------------------------------------------

  show(from, to) {
    const wall = Math.max(1, this.data.wall);
    const length = Math.min(wall, Math.max(SHORTEST_NS, to - from));
    const start = Math.min(Math.max(0, from), wall - length);
    this.from = start;
    this.to = start + length;
    this.request();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(ns) {
    this.show(this.from + ns, this.to + ns);
  }

  fit() {
    this.show(0, this.data.wall);
  }

  showSpan(i) {
    const length = Math.max(this.data.length(i), SHORTEST_NS);
    this.show(this.data.start[i] - length * 0.05, this.data.end[i] + length * 0.05);
    const lane = this.laneOf(i);
    if (lane.folded) { lane.folded = false; this.placeLanes(); this.resize(); }
    const top = lane.top + HEAD + this.data.depth[i] * ROW;
    if (top < this.scroller.scrollTop || top + ROW > this.scroller.scrollTop + this.viewHeight) {
      this.scroller.scrollTop = Math.max(0, top - this.viewHeight / 3);
    }
  }

  laneOf(i) {
    const [pid, thread] = this.data.lanes[this.data.lane[i]];
    return this.lanes.find((lane) => lane.pid === pid && lane.thread === thread);
  }

  timeAt(x) {
    return this.from + (x / this.width) * (this.to - this.from);
  }

  request() {
    if (this.wanted) return;
    this.wanted = true;
    requestAnimationFrame(() => { this.wanted = false; this.paint(); });
  }

  // --- what is where ------------------------------------------------------------------------------------------

  passes(i) {
    return this.data.length(i) >= this.shortest && !this.hiddenPhases.has(this.data.phase[i]);
  }

  firstInRow(row, time) {
    let low = 0;
    let high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.data.end[row[middle]] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  at(x, y) {
    const top = y + this.scroller.scrollTop;
    for (const lane of this.lanes) {
      if (top < lane.top || lane.folded) continue;
      const row = lane.rows[Math.floor((top - lane.top - HEAD) / ROW)];
      if (!row) continue;
      const slack = ((this.to - this.from) / this.width) * 2;
      const time = this.timeAt(x);
      for (let k = this.firstInRow(row, time - slack); k < row.length; k += 1) {
        const i = row[k];
        if (this.data.start[i] > time + slack) break;
        if (this.passes(i)) return i;
      }
    }
    return -1;
  }

  laneHeadAt(y) {
    const top = y + this.scroller.scrollTop;
    return this.lanes.find((lane) => top >= lane.top && top < lane.top + HEAD);
  }

  // --- painting -----------------------------------------------------------------------------------------------

  paint() {
    const context = this.chart.getContext('2d');
    const { width, viewHeight, theme } = this;
    context.clearRect(0, 0, width, viewHeight);
    const ticks = this.ticks();
    context.fillStyle = theme.line;
    for (const { x } of ticks) context.fillRect(x, 0, 1, viewHeight);
    let painted = 0;
    for (const lane of this.lanes) painted += this.paintLane(context, lane);
    this.paintAxis(ticks);
    this.paintOverview();
    this.section.dataset.from = String(Math.round(this.from));
    this.section.dataset.to = String(Math.round(this.to));
    this.section.dataset.painted = String(painted);
    byId('range').textContent = `${duration(this.from)} to ${duration(this.to)}`;
  }

  paintLane(context, lane) {
    const offset = this.scroller.scrollTop;
    const bottom = lane.top + HEAD + (lane.folded ? 0 : lane.rows.length * ROW);
    if (bottom < offset || lane.top > offset + this.viewHeight) return 0;
    const { theme } = this;
    let painted = 0;
    context.font = `11px ${theme.sans}`;
    context.textBaseline = 'middle';
    if (!lane.folded) {
      for (let depth = 0; depth < lane.rows.length; depth += 1) {
        const y = lane.top + HEAD + depth * ROW - offset;
        if (y > -ROW && y < this.viewHeight) painted += this.paintRow(context, lane.rows[depth], y);
      }
    }
    const y = lane.top - offset;
    context.fillStyle = theme.sunken;
    context.fillRect(0, y, this.width, HEAD - 4);
    context.fillStyle = theme.soft;
    context.fillText(`${lane.folded ? '▸' : '▾'}  ${lane.title}`, 10, y + (HEAD - 4) / 2 + 0.5);
    return painted;
  }

  paintRow(context, row, y) {
    const { data, from, to, width, theme, found } = this;
    const scale = width / (to - from);
    let painted = 0;
    let lastPixel = -1;
    for (let k = this.firstInRow(row, from); k < row.length; k += 1) {
      const i = row[k];
      if (data.start[i] > to) break;
      if (data.length(i) < this.shortest) continue;
      const left = Math.max(-2, (data.start[i] - from) * scale);
      const right = Math.min(width + 2, (data.end[i] - from) * scale);
      const size = Math.max(1, right - left - 0.5);
      // A thousand spans in one pixel are one pixel: paint the first, and any that a search found.
      const pixel = Math.floor(right);
      const marked = found !== null && found.has(i);
      if (size <= 1 && pixel === lastPixel && !marked) continue;
      lastPixel = pixel;
      painted += 1;
      const faded = this.hiddenPhases.has(data.phase[i]) || (found !== null && !marked);
      context.globalAlpha = faded ? 0.16 : 1;
      context.fillStyle = this.colors[data.phase[i]];
      context.fillRect(left, y, size, ROW - 2);
      if (size > 26) this.paintLabel(context, data.name(i), Math.max(left, 0), y, Math.min(right, width) - Math.max(left, 0), faded);
      context.globalAlpha = 1;
      if (i === this.selected || i === this.hovered) {
        context.strokeStyle = i === this.selected ? theme.accent : theme.ink;
        context.lineWidth = i === this.selected ? 2 : 1;
        context.strokeRect(left + 0.5, y + 0.5, Math.max(2, size - 1), ROW - 3);
      }
    }
    return painted;
  }

  paintLabel(context, text, left, y, room, faded) {
    const space = room - 10;
    if (space < 16) return;
    let shown = text.length > 300 ? text.slice(0, 300) : text;
    let wide = context.measureText(shown).width;
    // Of a dotted name the last part says most.
    const tail = wide > space && /^[\w.<>]+$/.test(shown) ? shown.slice(shown.lastIndexOf('.') + 1) : '';
    if (tail !== '') {
      shown = tail;
      wide = context.measureText(shown).width;
    }
    if (wide > space) {
      let letters = Math.floor((shown.length * space) / wide) - 1;
      while (letters > 0 && context.measureText(`${shown.slice(0, letters)}…`).width > space) letters -= 1;
      if (letters < 1) return;
      shown = `${shown.slice(0, letters)}…`;
    }
    context.fillStyle = faded ? this.theme.ink : this.theme.onPhase;
    context.fillText(shown, left + 5, y + (ROW - 2) / 2 + 0.5);
  }

  ticks() {
    const span = this.to - this.from;
    const rough = span / Math.max(2, this.width / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((value) => value >= rough);
    const ticks = [];
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      ticks.push({ at, x: Math.round(((at - this.from) / span) * this.width), step });
    }
    return ticks;
  }

  paintAxis(ticks) {
    const context = this.axis.getContext('2d');
    context.clearRect(0, 0, this.width, 24);
    context.font = `11px ${this.theme.sans}`;
    context.textBaseline = 'middle';
    for (const { at, x, step } of ticks) {
      context.fillStyle = this.theme.line;
      context.fillRect(x, 0, 1, 24);
      context.fillStyle = this.theme.soft;
      if (x < this.width - 44) context.fillText(tickLabel(at, step), x + 5, 12);
    }
  }

  // The main thread in one strip: in each pixel, the phases stacked by their share of that moment.
  paintOverviewBase() {
    const base = document.createElement('canvas');
    base.width = this.overview.width;
    base.height = this.overview.height;
    const context = base.getContext('2d');
    const ratio = base.width / this.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const columns = Math.ceil(this.width);
    const phases = this.colors.length;
    const shares = this.shares(columns);
    for (let column = 0; column < columns; column += 1) {
      let y = 36;
      for (let phase = 0; phase < phases; phase += 1) {
        const height = 26 * Math.min(1, shares[column * phases + phase]);
        if (height <= 0) continue;
        context.fillStyle = this.colors[phase];
        context.fillRect(column, y - height, 1, height);
        y -= height;
      }
    }
    this.base = base;
  }

  // Which share of each of `columns` slices of the run each phase filled, on the main thread, innermost span first.
  shares(columns) {
    const { data } = this;
    const phases = this.colors.length;
    const shares = new Float64Array(columns * phases);
    const slice = Math.max(1, data.wall) / columns;
    const add = (phase, from, to) => {
      for (let column = Math.floor(from / slice); column < columns && column * slice < to; column += 1) {
        shares[column * phases + phase] += (Math.min(to, (column + 1) * slice) - Math.max(from, column * slice)) / slice;
      }
    };
    const stack = [];
    let now = 0;
    const close = (until) => {
      while (stack.length > 0 && data.end[stack[stack.length - 1]] <= until) {
        const i = stack.pop();
        if (data.end[i] > now) { add(data.phase[i], now, data.end[i]); now = data.end[i]; }
      }
    };
    const main = this.lanes.find((lane) => lane.pid === data.root && lane.thread === data.root);
    if (!main) return shares;
    const order = main.rows.flat().sort((a, b) => data.start[a] - data.start[b] || data.depth[a] - data.depth[b]);
    for (const i of order) {
      close(data.start[i]);
      if (stack.length > 0 && data.start[i] > now) add(data.phase[stack[stack.length - 1]], now, data.start[i]);
      now = Math.max(now, data.start[i]);
      stack.push(i);
    }
    close(Infinity);
    return shares;
  }

  paintOverview() {
    const context = this.overview.getContext('2d');
    context.clearRect(0, 0, this.width, 46);
    context.drawImage(this.base, 0, 0, this.width, 46);
    const scale = this.width / Math.max(1, this.data.wall);
    const left = this.from * scale;
    const right = this.to * scale;
    context.globalAlpha = 0.72;
    context.fillStyle = this.theme.surface;
    context.fillRect(0, 0, left, 46);
    context.fillRect(right, 0, this.width - right, 46);
    context.globalAlpha = 1;
    context.strokeStyle = this.theme.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 1.5, Math.max(2, right - left - 1.5), 43);
  }
}

function tickLabel(at, step) {
  if (at === 0) return '0';
  const [unit, size] = step >= 1e8 ? ['s', 1e9] : step >= 1e5 ? ['ms', 1e6] : ['µs', 1e3];
  const digits = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
  return `${(at / size).toFixed(digits)} ${unit}`;
}
