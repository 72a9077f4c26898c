// Sortable tables, and which rows go into them.

const PAGE_ROWS = 60;

// given: columns {key, label, show?, right?, css?, flag?}, those without any value are left out; rows: objects, with `span` where a row stands for a span.
function sortableTable(given, rows, open, { sort = given[1].key, noun = 'row' } = {}) {
  const columns = given.filter(({ key: name }) => rows.some((row) => row[name] !== undefined && row[name] !== null && row[name] !== ''));
  let key = sort;
  let falling = true;
  let limit = PAGE_ROWS;
  let text = '';
  const body = make('tbody');
  const heads = columns.map((column) => {
    const button = make('button', { type: 'button', text: column.label });
    button.addEventListener('click', () => {
      falling = key === column.key ? !falling : column.right === true;
      key = column.key;
      refresh();
    });
    return make('th', { scope: 'col', class: column.right ? 'num' : '' }, button);
  });
  const filter = make('input', { type: 'search', placeholder: 'Filter', 'aria-label': `Filter ${noun}s`, autocomplete: 'off', spellcheck: 'false' });
  const tally = make('span', { class: 'quiet', role: 'status' });
  const all = make('button', { type: 'button' });
  const more = make('div', { class: 'more' }, all);
  filter.addEventListener('input', () => { text = filter.value.trim().toLowerCase(); limit = PAGE_ROWS; refresh(); });
  all.addEventListener('click', () => { limit = Infinity; refresh(); });
  const searchable = rows.map((row) => columns.map((column) => String(row[column.key] ?? '')).join('\n').toLowerCase());

  function refresh() {
    const kept = rows.filter((_, index) => text === '' || searchable[index].includes(text));
    const sign = falling ? -1 : 1;
    kept.sort((a, b) => sign * compare(a[key], b[key]));
    body.replaceChildren(...kept.slice(0, limit).map((row) => tableRow(columns, row, open)));
    heads.forEach((head, index) => {
      head.setAttribute('aria-sort', columns[index].key === key ? (falling ? 'descending' : 'ascending') : 'none');
    });
    tally.textContent = kept.length === rows.length ? plural(rows.length, noun) : `${number(kept.length)} of ${plural(rows.length, noun)}`;
    more.hidden = kept.length <= limit;
    all.textContent = `Show all ${number(kept.length)}`;
  }
  refresh();
  const bar = rows.length > 8 ? make('div', { class: 'toolbar' }, filter, tally) : null;
  return [bar, make('div', { class: 'scroll', tabindex: 0 }, make('table', {}, make('thead', {}, make('tr', {}, ...heads)), body), more)];
}

function compare(a, b) {
  const left = a ?? (typeof b === 'number' ? -Infinity : '');
  const right = b ?? (typeof a === 'number' ? -Infinity : '');
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  return String(left).localeCompare(String(right));
}

function tableRow(columns, row, open) {
  const cells = columns.map((column) => {
    const value = row[column.key];
    const shown = value === undefined || value === null || value === '' ? '' : column.show ? column.show(value, row) : String(value);
    return make('td', { class: [column.right ? 'num' : '', column.css || '', column.flag && column.flag(value) ? 'flag' : ''].join(' ').trim(), text: shown });
  });
  const line = make('tr', { 'data-span': row.span === undefined ? null : row.span }, ...cells);
  if (row.span !== undefined) {
    line.tabIndex = 0;
    line.title = 'Show in timeline';
    line.addEventListener('click', () => open(row.span));
    line.addEventListener('keydown', (event) => { if (event.key === 'Enter') open(row.span); });
  }
  return line;
}

function showVariables(data, open) {
  const rows = data.ofKind('variable').map((i) => {
    const at = data.attributes(i);
    return { span: i, name: data.name(i), time: data.length(i), initializer_ns: at.get('initializer_ns'), bytes: at.get('bytes'), shape: (at.get('shape') || []).toString().replaceAll(',', ' × '), dtype: at.get('dtype'), initializer: at.get('initializer'), overwritten: at.get('overwritten') ? 'overwritten' : '', layer: at.get('layer') };
  });
  if (rows.length === 0) return;
  const wasted = rows.filter((row) => row.overwritten !== '');
  const total = rows.reduce((sum, row) => sum + row.time, 0);
  const section = reveal('variables');
  const lost = wasted.length === 0 ? '' : ` ${plural(wasted.length, 'variable')} of them (${duration(wasted.reduce((sum, row) => sum + row.time, 0))}) were overwritten by a load before any step read them.`;
  section.append(
    make('p', { class: 'lead', text: `${plural(rows.length, 'variable')}, ${bytes(rows.reduce((sum, row) => sum + (row.bytes || 0), 0))}, created in ${duration(total)}.${lost}` }),
    ...sortableTable([
      { key: 'name', label: 'Variable', css: 'name' },
      { key: 'time', label: 'Time', right: true, show: duration },
      { key: 'initializer_ns', label: 'Initializer time', right: true, show: duration },
      { key: 'bytes', label: 'Size', right: true, show: bytes },
      { key: 'shape', label: 'Shape' },
      { key: 'dtype', label: 'Type' },
      { key: 'initializer', label: 'Initializer' },
      { key: 'overwritten', label: 'Later', flag: (value) => value !== '' },
    ], rows, open, { noun: 'variable' }).filter(Boolean),
  );
}

function showFunctions(data, open) {
  const groups = new Map();
  for (const i of data.ofKind('trace', 'step', 'steps', 'graph_optimization', 'xla_compile')) {
    const at = data.attributes(i);
    const name = at.get('function') || data.name(i);
    const key = `${data.lanes[data.lane[i]][0]}\n${name}`;
    if (!groups.has(key)) groups.set(key, { name, span: i, traces: 0, trace: 0, optimize: 0, compile: 0, busy: 0, later: 0, why: new Set(), ops: 0 });
    addToFunction(groups.get(key), data, i, at);
  }
  mergeShortNames(groups);
  const rows = [...groups.values()].map((row) => ({ ...row, why: [...row.why].join(', ').replaceAll('_', ' '), steady: row.later > 0 ? row.busy / row.later : undefined, optimize: row.optimize || undefined, compile: row.compile || undefined, traces: row.traces || undefined, trace: row.trace || undefined, ops: row.ops || undefined }));
  if (rows.length === 0) return;
  const section = reveal('functions');
  section.append(
    make('p', { class: 'lead', text: 'What each function cost to trace, optimise and compile, and its first steps beside the steady one.' }),
    ...sortableTable([
      { key: 'name', label: 'Function', css: 'name' },
      { key: 'trace', label: 'Trace time', right: true, show: duration },
      { key: 'traces', label: 'Traces', right: true, show: number },
      { key: 'why', label: 'Traced again for' },
      { key: 'ops', label: 'Graph ops', right: true, show: number },
      { key: 'optimize', label: 'Optimise', right: true, show: duration },
      { key: 'compile', label: 'XLA', right: true, show: duration },
      { key: 'step1', label: 'Step 1', right: true, show: duration },
      { key: 'step2', label: 'Step 2', right: true, show: duration },
      { key: 'step3', label: 'Step 3', right: true, show: duration },
      { key: 'steady', label: 'Steady', right: true, show: duration },
    ], rows, open, { noun: 'function' }).filter(Boolean),
  );
  showTraces(data, open, section);
}

// TensorFlow's own records call a function by its last name: such a row joins the one function it can mean.
function mergeShortNames(groups) {
  for (const [key, short] of [...groups]) {
    if (short.traces > 0 || short.name.includes('.')) continue;
    const pid = key.slice(0, key.indexOf('\n') + 1);
    const full = [...groups].filter(([other, row]) => other !== key && other.startsWith(pid) && row.name.endsWith(`.${short.name}`));
    if (full.length !== 1) continue;
    const row = full[0][1];
    for (const field of ['optimize', 'compile', 'busy', 'later']) row[field] += short[field];
    for (const field of ['step1', 'step2', 'step3']) row[field] ??= short[field];
    groups.delete(key);
  }
}

function addToFunction(row, data, i, at) {
  const kind = data.kind(i);
  const time = data.length(i);
  if (kind === 'trace') {
    row.traces += 1;
    row.trace += time;
    row.ops = Math.max(row.ops, at.get('graph_ops') || 0);
    if (at.get('reason') && at.get('reason') !== 'first') row.why.add(at.get('reason'));
  } else if (kind === 'graph_optimization') row.optimize += time;
  else if (kind === 'xla_compile') row.compile += time;
  else if (kind === 'steps') {
    row.busy += at.get('busy_ns') || 0;
    row.later += at.get('count') || 0;
  } else if (at.get('index') <= 3) row[`step${at.get('index')}`] = time;
  else {
    row.busy += time;
    row.later += 1;
  }
}

function showTraces(data, open, section) {
  const rows = data.ofKind('trace').map((i) => {
    const at = data.attributes(i);
    return { span: i, name: at.get('function') || data.name(i), time: data.length(i), index: at.get('trace_index'), reason: (at.get('reason') || '').replaceAll('_', ' '), differs: at.get('differs'), signature: at.get('signature'), ops: at.get('graph_ops'), site: at.get('site') || at.get('file') };
  });
  if (rows.length === 0) return;
  section.append(make('h3', { text: 'Every trace' }), ...sortableTable([
    { key: 'name', label: 'Function', css: 'name' },
    { key: 'time', label: 'Time', right: true, show: duration },
    { key: 'index', label: '#', right: true },
    { key: 'reason', label: 'Because' },
    { key: 'differs', label: 'What changed', css: 'wide' },
    { key: 'signature', label: 'Signature', css: 'name' },
    { key: 'ops', label: 'Graph ops', right: true, show: number },
    { key: 'site', label: 'Called at', css: 'name' },
  ], rows, open, { noun: 'trace' }).filter(Boolean));
}

function showFiles(data, open) {
  const parts = data.ofKind('load', 'read', 'decode', 'assign', 'library').map((i) => {
    const at = data.attributes(i);
    const size = at.get('bytes');
    const time = data.length(i);
    return { span: i, what: data.kind(i), name: at.get('path') || data.name(i), time, bytes: size, rate: size > 0 && time > 0 ? size / (time / 1e9) : undefined, calls: at.get('reads') ?? at.get('count') ?? at.get('files'), format: at.get('format'), where: at.get('filesystem') };
  });
  const waits = data.ofKind('io').map((i) => {
    const at = data.attributes(i);
    return { span: i, name: at.get('target') || data.name(i), time: data.length(i), what: at.get('io'), calls: at.get('calls'), bytes: at.get('bytes'), site: at.get('site') };
  });
  if (parts.length + waits.length === 0) return;
  const section = reveal('files');
  if (parts.length > 0) section.append(make('p', { class: 'lead', text: 'Models, weights and libraries: what was read, decoded and assigned, and how fast.' }), ...sortableTable([
    { key: 'name', label: 'File', css: 'name' },
    { key: 'time', label: 'Time', right: true, show: duration },
    { key: 'what', label: 'Stage' },
    { key: 'format', label: 'Format' },
    { key: 'bytes', label: 'Size', right: true, show: bytes },
    { key: 'rate', label: 'Rate', right: true, show: (value) => `${bytes(value)}/s` },
    { key: 'calls', label: 'Pieces', right: true, show: number },
    { key: 'where', label: 'Storage' },
  ], parts, open, { noun: 'part' }).filter(Boolean));
  if (waits.length > 0) section.append(make('h3', { text: 'Waiting' }), ...sortableTable([
    { key: 'name', label: 'For', css: 'name' },
    { key: 'time', label: 'Time', right: true, show: duration },
    { key: 'what', label: 'Kind' },
    { key: 'calls', label: 'Calls', right: true, show: number },
    { key: 'bytes', label: 'Size', right: true, show: bytes },
    { key: 'site', label: 'At', css: 'name' },
  ], waits, open, { noun: 'wait' }).filter(Boolean));
}
