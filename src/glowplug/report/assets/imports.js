// The import tree: who brought in what, with cumulative and own time. Rows are made when their parent opens.

function showImports(data, open) {
  const modules = data.ofKind('module');
  if (modules.length === 0) return;
  const isModule = new Set(modules);
  const children = new Map();
  const roots = [];
  for (const i of modules) {
    let above = data.parent[i];
    while (above >= 0 && !isModule.has(above)) above = data.parent[above];
    if (above < 0) roots.push(i);
    else if (children.has(above)) children.get(above).push(i);
    else children.set(above, [i]);
  }
  const longest = (a, b) => data.length(b) - data.length(a);
  for (const list of children.values()) list.sort(longest);
  roots.sort(longest);
  const below = new Map();
  for (let k = modules.length - 1; k >= 0; k -= 1) {
    const i = modules[k];
    below.set(i, (children.get(i) || []).reduce((sum, child) => sum + 1 + (below.get(child) || 0), 0));
  }
  const own = new Map(modules.map((i) => {
    const given = data.attributes(i).get('self_ns');
    return [i, typeof given === 'number' ? given : data.own[i]];
  }));
  const total = roots.reduce((sum, i) => sum + data.length(i), 0) || 1;
  const opened = new Set();
  for (const root of roots.slice(0, 3)) openSlowPath(root);

  // The branch that holds most of the time is open from the start.
  function openSlowPath(i) {
    for (let at = i, steps = 0; at !== undefined && steps < 4 && data.length(at) > total * 0.25; steps += 1) {
      if (children.has(at)) opened.add(at);
      at = (children.get(at) || [])[0];
    }
  }

  const body = make('tbody');
  let flat = false;
  let text = '';

  function refresh() {
    body.replaceChildren();
    if (flat || text !== '') {
      const found = modules.filter((i) => text === '' || data.lower[data.nameNumber[i]].includes(text));
      found.sort((a, b) => own.get(b) - own.get(a));
      body.append(...found.slice(0, 200).map((i) => row(i, 0, false)));
      tally.textContent = `${plural(found.length, 'module')}, by own time${found.length > 200 ? '; the first 200' : ''}`;
    } else {
      const lines = [];
      for (const root of roots) addLines(root, 0, lines);
      body.append(...lines);
      tally.textContent = `${plural(modules.length, 'module')}, ${duration(total)}`;
    }
    treeButton.setAttribute('aria-pressed', String(!flat));
    flatButton.setAttribute('aria-pressed', String(flat));
  }

  function addLines(root, level, lines) {
    const pending = [[root, level]];
    while (pending.length > 0) {
      const [i, depth] = pending.pop();
      lines.push(row(i, depth, true));
      if (opened.has(i)) for (const child of [...(children.get(i) || [])].reverse()) pending.push([child, depth + 1]);
    }
  }

  function row(i, depth, tree) {
    const inside = below.get(i) || 0;
    let lead = make('span', { class: 'leaf' });
    if (tree && inside > 0) {
      lead = make('button', { type: 'button', class: 'toggle', 'aria-expanded': String(opened.has(i)), 'aria-label': `Modules below ${data.name(i)}`, 'data-toggle': i, text: opened.has(i) ? '▾' : '▸' });
    }
    const name = make('td', { class: 'name' }, lead, make('span', { text: data.name(i) }));
    const importer = data.attributes(i).get('site') || (tree ? '' : data.attributes(i).get('importer'));
    if (importer) name.append(make('span', { class: 'sub', text: importer }));
    name.style.paddingLeft = `${12 + depth * 18}px`;
    const line = make('tr', { 'data-module': i }, name,
      make('td', { class: 'num', text: duration(data.length(i)) }),
      make('td', { class: 'num', text: duration(own.get(i)) }),
      make('td', { class: 'num', text: inside > 0 ? number(inside) : '' }),
      make('td', {}, meter(data.length(i) / total, own.get(i) / total)));
    return line;
  }

  body.addEventListener('click', (event) => {
    const toggle = event.target.closest('[data-toggle]');
    if (toggle) {
      const i = Number(toggle.dataset.toggle);
      if (!opened.delete(i)) opened.add(i);
      const focused = document.activeElement === toggle;
      refresh();
      if (focused) body.querySelector(`[data-toggle="${i}"]`).focus();
    } else if (event.target.closest('tr')) open(Number(event.target.closest('tr').dataset.module));
  });

  const filter = make('input', { type: 'search', placeholder: 'Filter modules', 'aria-label': 'Filter modules', autocomplete: 'off', spellcheck: 'false' });
  filter.addEventListener('input', () => { text = filter.value.trim().toLowerCase(); refresh(); });
  const tally = make('span', { class: 'quiet', role: 'status' });
  const button = (words, action) => {
    const made = make('button', { type: 'button', text: words });
    made.addEventListener('click', () => { action(); refresh(); });
    return made;
  };
  const treeButton = button('Tree', () => { flat = false; });
  const flatButton = button('By own time', () => { flat = true; });
  const openAll = button('Open all', () => { flat = false; for (const i of children.keys()) opened.add(i); });
  const closeAll = button('Close all', () => { flat = false; opened.clear(); });
  const heads = ['Module', 'Total', 'Own', 'Brought in', 'Share'].map((words, k) => make('th', { scope: 'col', class: k > 0 && k < 4 ? 'num' : '', text: words }));
  const asked = data.importers.map(([what, chain, site]) => make('p', { class: 'lead' }, `${what} was first asked for by `, make('code', { text: chain }), site ? ` at ${site}` : ''));
  reveal('imports').append(
    ...asked,
    make('div', { class: 'toolbar' }, filter, tally, make('span', { class: 'spacer' }), make('span', { class: 'group' }, treeButton, flatButton), make('span', { class: 'group' }, openAll, closeAll)),
    make('div', { class: 'scroll', tabindex: 0 }, make('table', { class: 'tree' }, make('thead', {}, make('tr', {}, ...heads)), body)),
  );
  refresh();
}

function meter(share, part) {
  const clamp = (value) => Math.max(0, Math.min(1, value)) * 110;
  return draw('svg', { class: 'meter', viewBox: '0 0 110 6', 'aria-hidden': 'true' },
    draw('rect', { class: 'back', width: 110, height: 6, rx: 3 }),
    draw('rect', { class: 'total', width: clamp(share), height: 6, rx: 3 }),
    draw('rect', { class: 'self', width: clamp(part), height: 6, rx: 3 }));
}
