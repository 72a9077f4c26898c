// Making elements and writing numbers. Text reaches the page as text nodes only: no markup is ever parsed from data.

const SVG = 'http://www.w3.org/2000/svg';

function byId(id) {
  return document.getElementById(id);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name === 'text') node.textContent = value;
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return node;
}

function make(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function significant(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

function duration(ns) {
  if (ns === 0) return '0';
  const size = Math.abs(ns);
  if (size >= 1e9) return `${significant(ns / 1e9)} s`;
  if (size >= 1e6) return `${significant(ns / 1e6)} ms`;
  if (size >= 1e3) return `${significant(ns / 1e3)} µs`;
  return `${Math.round(ns)} ns`;
}

function bytes(count) {
  let value = count;
  for (const unit of ['B', 'kB', 'MB']) {
    if (Math.abs(value) < 1000) return unit === 'B' ? `${Math.round(value)} B` : `${significant(value)} ${unit}`;
    value /= 1000;
  }
  return `${significant(value)} GB`;
}

const grouped = new Intl.NumberFormat('en');

function number(value) {
  return Number.isInteger(value) ? grouped.format(value) : String(Number(value.toPrecision(4)));
}

function plural(count, noun) {
  return `${grouped.format(count)} ${noun}${count === 1 ? '' : 's'}`;
}

// A figure by the unit its name ends in, as the profile's vocabulary has it.
function quantity(name, value) {
  if (typeof value === 'number') {
    const unit = name.replace(/_per_round$/, '');
    if (/(^|_)ns$/.test(unit)) return duration(value);
    if (/(^|_)bytes$/.test(unit)) return bytes(value);
    return name === 'function_id' || name === 'object' || name === 'line' ? String(value) : number(value);
  }
  if (value === true || value === false) return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.map((item) => (typeof item === 'object' ? JSON.stringify(item) : String(item))).join(', ');
  if (value && typeof value === 'object') return Object.entries(value).map(([key, item]) => `${key}: ${quantity(key, item)}`).join(', ');
  return String(value);
}

function label(name) {
  return name.replace(/_(ns|bytes)$/, '').replaceAll('_', ' ');
}

function reveal(section) {
  byId(section).hidden = false;
  const item = document.querySelector(`[data-nav="${section}"]`);
  if (item) item.hidden = false;
  return byId(section);
}
