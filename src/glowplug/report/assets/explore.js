// Exploring the timeline: gestures, keys, search, filters, the tooltip and the details of a span.

function exploreTimeline(data, timeline) {
  const { chart, overview, scroller } = timeline;
  const tip = byId('tip');

  function select(i) {
    timeline.selected = i;
    showDetails(data, timeline, i);
    timeline.request();
  }

  function place(event) {
    const box = chart.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  // --- pointer on the chart -----------------------------------------------------------------------------------
  let drag = null;
  chart.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    const [x, y] = place(event);
    drag = { x, y, lastX: x, lastY: event.clientY, moved: false, range: event.shiftKey };
    chart.setPointerCapture(event.pointerId);
  });
  chart.addEventListener('pointermove', (event) => {
    const [x, y] = place(event);
    if (drag === null) {
      hover(timeline.at(x, y), event);
      return;
    }
    if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 3) drag.moved = true;
    if (!drag.moved || drag.range) return;
    chart.classList.add('grabbing');
    timeline.pan(((drag.lastX - x) / timeline.width) * (timeline.to - timeline.from));
    if (event.pointerType === 'mouse') scroller.scrollTop += drag.lastY - event.clientY;
    drag.lastX = x;
    drag.lastY = event.clientY;
    hover(-1, event);
  });
  chart.addEventListener('pointerup', (event) => {
    if (drag === null) return;
    const [x, y] = place(event);
    const { moved, range } = drag;
    const startX = drag.x;
    drag = null;
    chart.classList.remove('grabbing');
    if (moved && range) {
      timeline.show(timeline.timeAt(Math.min(x, startX)), timeline.timeAt(Math.max(x, startX)));
    } else if (!moved) {
      const lane = timeline.laneHeadAt(y);
      if (lane) {
        lane.folded = !lane.folded;
        timeline.placeLanes();
        timeline.resize();
      } else select(timeline.at(x, y));
    }
  });
  chart.addEventListener('pointercancel', () => { drag = null; chart.classList.remove('grabbing'); });
  chart.addEventListener('pointerleave', (event) => hover(-1, event));
  chart.addEventListener('dblclick', (event) => {
    const i = timeline.at(...place(event));
    if (i >= 0) timeline.showSpan(i);
  });
  chart.addEventListener('wheel', (event) => {
    const [x] = place(event);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      timeline.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.008), timeline.timeAt(x));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      timeline.pan(((event.deltaX || event.deltaY) / timeline.width) * (timeline.to - timeline.from));
    }
  }, { passive: false });
  scroller.addEventListener('scroll', () => timeline.request(), { passive: true });

  function hover(i, event) {
    if (i !== timeline.hovered) {
      timeline.hovered = i;
      timeline.request();
    }
    tip.hidden = i < 0;
    if (i < 0) return;
    tip.replaceChildren(
      make('b', { text: data.name(i) }),
      `${data.phases[data.phase[i]][1]} · ${duration(data.length(i))}, own ${duration(data.own[i])} · at ${duration(data.start[i])}`,
    );
    tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 16, window.innerHeight - tip.offsetHeight - 8)}px`;
  }

  // --- keys ---------------------------------------------------------------------------------------------------
  const keys = {
    ArrowLeft: () => timeline.pan(-(timeline.to - timeline.from) / 8),
    ArrowRight: () => timeline.pan((timeline.to - timeline.from) / 8),
    ArrowUp: () => { scroller.scrollTop -= 3 * ROW; },
    ArrowDown: () => { scroller.scrollTop += 3 * ROW; },
    '+': () => timeline.zoom(0.6),
    '=': () => timeline.zoom(0.6),
    '-': () => timeline.zoom(1 / 0.6),
    0: () => timeline.fit(),
    Escape: () => select(-1),
  };
  chart.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  byId('zoom-in').addEventListener('click', () => timeline.zoom(0.5));
  byId('zoom-out').addEventListener('click', () => timeline.zoom(2));
  byId('fit').addEventListener('click', () => timeline.fit());

  // --- overview -----------------------------------------------------------------------------------------------
  let brush = null;
  const overviewTime = (event) => {
    const box = overview.getBoundingClientRect();
    return ((event.clientX - box.left) / box.width) * data.wall;
  };
  overview.addEventListener('pointerdown', (event) => {
    const time = overviewTime(event);
    const whole = timeline.to - timeline.from >= data.wall * 0.999;
    const inside = !whole && time >= timeline.from && time <= timeline.to;
    brush = { time, inside, from: timeline.from, to: timeline.to };
    overview.setPointerCapture(event.pointerId);
  });
  overview.addEventListener('pointermove', (event) => {
    if (brush === null) return;
    const time = overviewTime(event);
    if (brush.inside) timeline.show(brush.from + time - brush.time, brush.to + time - brush.time);
    else if (Math.abs(time - brush.time) > data.wall / 400) timeline.show(Math.min(time, brush.time), Math.max(time, brush.time));
  });
  overview.addEventListener('pointerup', () => { brush = null; });
  overview.addEventListener('dblclick', () => timeline.fit());

  // --- search and filters -------------------------------------------------------------------------------------
  const search = byId('search');
  let matches = [];
  let current = -1;
  function find() {
    const text = search.value.trim().toLowerCase();
    matches = [];
    current = -1;
    if (text !== '') {
      for (let i = 0; i < data.count; i += 1) if (data.lower[data.nameNumber[i]].includes(text) && timeline.passes(i)) matches.push(i);
    }
    timeline.found = text === '' ? null : new Set(matches);
    byId('matches').textContent = text === '' ? '' : plural(matches.length, 'match').replace('matchs', 'matches');
    byId('next').disabled = byId('previous').disabled = matches.length === 0;
    timeline.request();
  }
  function step(by) {
    if (matches.length === 0) return;
    current = (current + by + matches.length) % matches.length;
    select(matches[current]);
    timeline.showSpan(matches[current]);
    byId('matches').textContent = `${current + 1} of ${number(matches.length)}`;
  }
  search.addEventListener('input', find);
  search.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') step(event.shiftKey ? -1 : 1);
  });
  byId('next').addEventListener('click', () => step(1));
  byId('previous').addEventListener('click', () => step(-1));
  byId('shortest').addEventListener('change', (event) => {
    timeline.shortest = Number(event.target.value);
    find();
  });
  makeChips(data, timeline, find);

  return {
    select,
    // Bring the given spans into view and dim the rest.
    reveal(spans) {
      const shown = spans.filter((i) => i !== undefined);
      if (shown.length === 0) return;
      search.value = '';
      find();
      timeline.found = new Set(shown);
      select(shown[0]);
      if (shown.length === 1) timeline.showSpan(shown[0]);
      else {
        const from = Math.min(...shown.map((i) => data.start[i]));
        const to = Math.max(...shown.map((i) => data.end[i]));
        timeline.show(from - (to - from) * 0.05, to + (to - from) * 0.05);
      }
      byId('timeline').scrollIntoView();
    },
  };
}

function makeChips(data, timeline, changed) {
  const present = new Set(data.phase);
  for (const [index, [name, text]] of data.phases.entries()) {
    if (!present.has(index)) continue;
    const chip = make('button', { type: 'button', class: `p-${name}`, 'aria-pressed': 'true', 'data-phase': name, title: 'Click to hide, double-click for this one alone' }, make('i', { class: 'swatch' }), text);
    chip.addEventListener('click', () => toggle(index));
    chip.addEventListener('dblclick', () => only(index));
    byId('chips').append(chip);
  }
  function refresh() {
    for (const chip of byId('chips').children) {
      const index = data.phases.findIndex(([name]) => name === chip.dataset.phase);
      chip.setAttribute('aria-pressed', String(!timeline.hiddenPhases.has(index)));
    }
    changed();
  }
  function toggle(index) {
    if (!timeline.hiddenPhases.delete(index)) timeline.hiddenPhases.add(index);
    refresh();
  }
  function only(index) {
    const alone = timeline.hiddenPhases.size === present.size - 1 && !timeline.hiddenPhases.has(index);
    timeline.hiddenPhases = new Set(alone ? [] : [...present].filter((other) => other !== index));
    refresh();
  }
}

function showDetails(data, timeline, i) {
  const panel = byId('details');
  panel.hidden = i < 0;
  if (i < 0) return;
  const [pid, thread] = data.lanes[data.lane[i]];
  const rows = [
    ['phase', data.phases[data.phase[i]][1]],
    ['kind', data.kind(i)],
    ['duration', duration(data.length(i))],
    ['own time', duration(data.own[i])],
    ['starts at', duration(data.start[i])],
    ['where', thread === pid ? `pid ${pid}, main thread` : `pid ${pid}, thread ${thread}`],
    ...[...data.attributes(i)].map(([key, value]) => [label(key), quantity(key, value)]),
  ];
  if (data.parent[i] >= 0) rows.push(['inside', data.name(data.parent[i])]);
  const close = make('button', { type: 'button', class: 'close', 'aria-label': 'Close', text: '×' });
  close.addEventListener('click', () => { timeline.selected = -1; panel.hidden = true; timeline.request(); });
  panel.replaceChildren(
    make('h3', { text: data.name(i) }),
    close,
    make('dl', {}, ...rows.map(([key, value]) => make('div', {}, make('dt', { text: key }), make('dd', { text: value })))),
  );
}
