// Elements and words. Every value of the server becomes a text node or an attribute of our choice: never markup.

const find = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, String(value));
  for (const child of children) if (child !== null) element.append(child instanceof Node ? child : String(child));
  return element;
}

const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// Makes one tree like another and touches only what differs, so that focus and selection stay where they are.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) { old.replaceWith(fresh); return; }
  if (old.nodeType !== Node.ELEMENT_NODE) { old.nodeValue = fresh.nodeValue; return; }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...fresh.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  show(old, [...fresh.childNodes]);
}

function show(parent, children) {
  const before = [...parent.childNodes];
  children.forEach((child, place) => { if (place < before.length) morph(before[place], child); else parent.append(child); });
  before.slice(children.length).forEach((node) => node.remove());
}

function say(element, text) { if (element.textContent !== text) element.textContent = text; }

function number(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return value >= 10 ? value.toFixed(1).replace(/\.0$/, "") : String(Number(value.toFixed(2)));
}

function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  return value >= 1000 ? `${number(value / 1000)} s` : `${number(value)} ms`;
}

function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let step = 0;
  while (value >= 1000 && step < units.length - 1) { value /= 1000; step += 1; }
  return `${number(value)} ${units[step]}`;
}

function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${number(seconds)} s`;
  const whole = Math.floor(seconds / 60);
  if (whole < 60) return `${whole} min`;
  return whole < 2880 ? `${Math.floor(whole / 60)} h ${whole % 60} min` : `${Math.floor(whole / 1440)} days`;
}
