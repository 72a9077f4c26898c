// Line charts in SVG: memory, threads and graph size over the run, and what each round of a loop cost.

const CHART = { width: 360, height: 170, left: 58, right: 12, top: 10, bottom: 24 };

// lines: [{label, color, x: [...], y: [...], step?}]
function lineChart(title, lines, showX, showY, { wide = false, note = '', range = null } = {}) {
  const box = { ...CHART, width: wide ? 1130 : CHART.width };
  const xs = lines.flatMap((line) => [line.x[0], line.x[line.x.length - 1]]);
  const [low, high] = range || [Math.min(...xs), Math.max(...xs)];
  let peak = 0;
  for (const line of lines) for (const value of line.y) if (value > peak) peak = value;
  const step = niceStep((peak || 1) / 4, showY === number);
  const top = Math.max(step, Math.ceil((peak || 1) / step) * step);
  const px = (x) => box.left + ((x - low) / Math.max(1, high - low)) * (box.width - box.left - box.right);
  const py = (y) => box.height - box.bottom - (y / top) * (box.height - box.top - box.bottom);
  const svg = draw('svg', { viewBox: `0 0 ${box.width} ${box.height}`, role: 'img', 'aria-label': title });
  for (let value = 0; value <= top * 1.001; value += step) {
    svg.append(
      draw('line', { class: 'grid', x1: box.left, x2: box.width - box.right, y1: py(value), y2: py(value) }),
      draw('text', { class: 'tick', x: box.left - 8, y: py(value) + 4, 'text-anchor': 'end', text: showY(value) }));
  }
  const ticks = wide ? 8 : 3;
  for (let k = 0; k <= ticks; k += 1) {
    const x = low + ((high - low) * k) / ticks;
    svg.append(draw('text', { class: 'tick', x: px(x), y: box.height - 6, 'text-anchor': k === 0 ? 'start' : k === ticks ? 'end' : 'middle', text: showX(x) }));
  }
  for (const line of lines) svg.append(draw('path', { class: 'series', stroke: line.color, d: pathOf(line, px, py) }));
  const cursor = draw('line', { class: 'cursor', y1: box.top, y2: box.height - box.bottom, visibility: 'hidden' });
  svg.append(cursor);
  const read = make('span', { class: 'read', text: note });
  svg.addEventListener('pointermove', (event) => {
    const bounds = svg.getBoundingClientRect();
    const at = low + (((event.clientX - bounds.left) / bounds.width) * box.width - box.left) / (box.width - box.left - box.right) * (high - low);
    const x = Math.min(high, Math.max(low, at));
    cursor.setAttribute('x1', px(x));
    cursor.setAttribute('x2', px(x));
    cursor.setAttribute('visibility', 'visible');
    read.textContent = `${showX(x)}: ${lines.map((line) => `${lines.length > 1 ? `${line.label} ` : ''}${showY(line.y[nearest(line.x, x)])}`).join(', ')}`;
  });
  svg.addEventListener('pointerleave', () => { cursor.setAttribute('visibility', 'hidden'); read.textContent = note; });
  const keys = lines.length < 2 ? [] : lines.map((line) => {
    const mark = make('i');
    mark.style.background = line.color;
    return make('span', {}, mark, line.label);
  });
  return make('figure', { class: `card chart${wide ? ' wide' : ''}`, 'data-chart': title }, make('header', {}, make('b', { text: title }), ...keys, read), svg);
}

function pathOf(line, px, py) {
  let path = '';
  for (let k = 0; k < line.x.length; k += 1) {
    const x = px(line.x[k]).toFixed(1);
    if (k === 0) path = `M${x} ${py(line.y[k]).toFixed(1)}`;
    else path += line.step ? `H${x}V${py(line.y[k]).toFixed(1)}` : `L${x} ${py(line.y[k]).toFixed(1)}`;
  }
  return path;
}

// Counts have whole steps.
function niceStep(rough, whole = false) {
  if (whole && rough < 1) return 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return (whole ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10]).map((m) => m * power).find((value) => value >= rough);
}

function nearest(xs, x) {
  let low = 0;
  let high = xs.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1; else high = middle;
  }
  return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
}

function showMemory(data) {
  const series = new Map(Object.entries(data.series));
  const line = (name, text, color, step = false) => {
    const points = series.get(name);
    return points && points[0].length > 1 ? [{ label: text, color, x: points[0], y: points[1], step }] : [];
  };
  const range = [0, Math.max(1, data.wall)];
  const tree = data.processes.length > 1 ? line('tree_rss_bytes', 'all processes', '#a3b1c6') : [];
  const memory = [...tree, ...line('rss_bytes', 'resident', '#5b9bea'), ...line('pss_bytes', 'proportional', '#58b878')];
  const charts = [];
  if (memory.length > 0) charts.push(lineChart('Memory', memory, duration, bytes, { wide: true, range }));
  for (const [name, title, color, show] of [
    ['threads', 'Threads', '#b79af0', number], ['processes', 'Processes', '#8f9ff0', number], ['graph_ops', 'Graph operations', '#d295e4', number], ['traces', 'Traces so far', '#9a7be0', number],
    ['read_bytes', 'Read from disk', '#e6ad5c', bytes], ['major_faults', 'Major page faults', '#f28e82', number], ['minor_faults', 'Minor page faults', '#c9a58c', number],
  ]) {
    const points = line(name, title, color, true);
    if (points.length > 0 && points[0].y.some((value) => value !== points[0].y[0])) charts.push(lineChart(title, points, duration, show, { range }));
  }
  if (charts.length > 0) reveal('memory').append(make('p', { class: 'lead', text: 'Of the root process over the run.' }), make('div', { class: 'charts' }, ...charts));
}

function showLoops(data) {
  if (data.loops.length === 0) return;
  const section = reveal('loops');
  section.append(make('p', { class: 'lead', text: 'Lines that made the same expensive call again and again, and what each round cost.' }));
  for (const loop of data.loops) {
    const charts = [];
    for (const [name, title, color, show, slope] of [
      ['duration_ns', 'Time a round', '#f28e82', duration, 'ns_per_round'], ['rss_bytes', 'Memory', '#5b9bea', bytes, 'rss_bytes_per_round'],
      ['graph_ops', 'Graph operations', '#d295e4', number, 'graph_ops_per_round'], ['threads', 'Threads', '#b79af0', number, 'threads_per_round'], ['traces', 'Traces so far', '#9a7be0', number, 'traces_per_round'],
    ]) {
      const values = loop.rounds[name];
      if (values.length < 2 || (name !== 'duration_ns' && values.every((value) => value === values[0]))) continue;
      const grows = loop.slopes[slope];
      const note = grows ? `${grows > 0 ? '+' : ''}${quantity(slope, grows)} a round` : '';
      charts.push(lineChart(title, [{ label: title, color, x: values.map((_, k) => k + 1), y: values }], (x) => number(Math.round(x)), show, { note }));
    }
    const adders = loop.adders.slice(0, 5).map(([site, count]) => `${site} added ${plural(count, 'graph operation')}`).join('; ');
    section.append(make('div', { class: 'loop' },
      make('h3', {}, `${loop.call} × ${number(loop.rounds.duration_ns.length)} at `, make('code', { text: loop.site })),
      make('p', { text: [loop.function ? `in ${loop.function}` : '', adders].filter(Boolean).join(' · ') }),
      make('div', { class: 'charts' }, ...charts)));
  }
}
