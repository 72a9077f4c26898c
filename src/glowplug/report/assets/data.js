// Unpack the columns that report/document.py wrote.

function headOf(text, points) {
  return /[\ud800-\udbff]/.test(text) ? Array.from(text).slice(0, points).join('') : text.slice(0, points);
}

function readData() {
  const raw = JSON.parse(byId('profile').textContent);
  const spans = raw.spans;
  const count = spans.start.length;
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  const own = new Float64Array(count);
  const depth = new Uint16Array(count);
  const children = new Map();
  let at = 0;
  for (let i = 0; i < count; i += 1) {
    at += spans.start[i];
    start[i] = at;
    end[i] = at + spans.duration[i];
    own[i] = spans.duration[i] - spans.covered[i];
    const parent = spans.parent[i];
    if (parent >= 0) {
      depth[i] = depth[parent] + 1;
      if (!children.has(parent)) children.set(parent, []);
      children.get(parent).push(i);
    }
  }
  const [shared, rest] = raw.strings;
  const strings = new Array(rest.length);
  // The lengths count code points; one outside the basic plane is two units here, so such prefixes are cut by points.
  for (let k = 0, before = ''; k < rest.length; k += 1) {
    before = headOf(before, shared[k]) + rest[k];
    strings[k] = before;
  }
  const positions = new Map(spans.id.map((id, index) => [id, index]));
  const shapes = spans.shapes.map((shape) => shape.map(([key, text]) => [strings[key], text === 1]));

  return {
    ...raw,
    count,
    start,
    end,
    own,
    depth,
    phase: spans.phase,
    parent: spans.parent,
    lane: spans.lane,
    lanes: spans.lanes,
    name: (i) => strings[spans.name[i]],
    kind: (i) => strings[spans.kind[i]],
    length: (i) => spans.duration[i],
    children: (i) => children.get(i) || [],
    position: (id) => positions.get(id),
    // A Map, not an object: a key such as __proto__ is a key like any other.
    attributes(i) {
      const packed = spans.attrs[i];
      if (packed === 0) return new Map();
      return new Map(shapes[packed[0]].map(([key, text], k) => [key, text ? strings[packed[k + 1]] : packed[k + 1]]));
    },
    ofKind(...kinds) {
      const wanted = new Set(kinds.map((kind) => strings.indexOf(kind)));
      const found = [];
      for (let i = 0; i < count; i += 1) if (wanted.has(spans.kind[i])) found.push(i);
      return found;
    },
    lower: strings.map((text) => text.toLowerCase()),
    nameNumber: spans.name,
  };
}
