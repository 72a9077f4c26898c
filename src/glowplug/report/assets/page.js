// Start the page: read the data, build each section, then say that it is ready.

function followTheme(repaint) {
  const root = document.documentElement;
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  const button = byId('theme');
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : system.matches);
  const mark = () => { button.textContent = isDark() ? '☀' : '☾'; };
  button.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    mark();
    repaint();
  });
  system.addEventListener('change', () => { mark(); repaint(); });
  mark();
}

function copyText(text) {
  const selected = () => {
    const area = make('textarea', { 'aria-hidden': 'true' });
    area.value = text;
    area.style.position = 'fixed';
    area.style.opacity = '0';
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  };
  if (!navigator.clipboard) return Promise.resolve(selected());
  return navigator.clipboard.writeText(text).catch(selected);
}

function enableCopying() {
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-copy]');
    if (!button) return;
    copyText(button.parentElement.querySelector('code').textContent).then(() => {
      button.textContent = 'Copied';
      button.dataset.done = '';
      setTimeout(() => { button.textContent = 'Copy'; delete button.dataset.done; }, 1600);
    });
  });
}

// Paper shows the whole run, in light colours whatever the screen has.
function printWhole(timeline) {
  const root = document.documentElement;
  let view = null;
  const before = () => {
    if (view !== null) return;
    view = [timeline.from, timeline.to, root.dataset.theme];
    root.dataset.theme = 'light';
    timeline.from = 0;
    timeline.to = Math.max(1, timeline.data.wall);
    timeline.readTheme();
    timeline.scroller.scrollTop = 0;
    timeline.resize(timeline.height <= 1400);
  };
  const after = () => {
    if (view === null) return;
    const theme = view.pop();
    if (theme === undefined) delete root.dataset.theme; else root.dataset.theme = theme;
    [timeline.from, timeline.to] = view;
    view = null;
    timeline.readTheme();
    timeline.resize();
  };
  window.addEventListener('beforeprint', before);
  window.addEventListener('afterprint', after);
  window.matchMedia('print').addEventListener('change', (event) => (event.matches ? before() : after()));
}

function start() {
  const data = readData();
  const timeline = new Timeline(data);
  const explorer = exploreTimeline(data, timeline);
  const open = (i) => explorer.reveal([i]);
  showImports(data, open);
  showFunctions(data, open);
  showVariables(data, open);
  showFiles(data, open);
  showMemory(data);
  showLoops(data);
  if (data.left_out > 0) {
    document.querySelector('.hint').append(` · the ${number(data.left_out)} shortest spans are left out of this page; totals include them`);
  }
  for (const card of document.querySelectorAll('[data-finding]')) {
    const button = card.querySelector('[data-show]');
    if (button) button.addEventListener('click', () => explorer.reveal(data.findings[Number(card.dataset.finding)].map(data.position)));
  }
  followTheme(() => { timeline.readTheme(); timeline.resize(); });
  enableCopying();
  printWhole(timeline);
  new ResizeObserver(() => { if (timeline.scroller.clientWidth !== timeline.width) timeline.resize(); }).observe(timeline.scroller);
  performance.mark('glowplug-ready');
  document.documentElement.dataset.ready = 'true';
}

start();
