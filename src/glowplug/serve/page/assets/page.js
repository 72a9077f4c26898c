// Asks the server every two seconds while somebody looks, with the token where one is needed.

const PERIOD_MS = 2000;
let token = "";
let timer = 0;

function ask(path, options = {}) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  return fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
}

function state(text, kind) {
  const pill = find("state");
  say(pill, text);
  pill.className = `pill ${kind}`;
}

function showLive(live) {
  state(live.ready ? "ready" : "not ready", live.ready ? "good" : "busy");
  const counts = `${live.requests.toLocaleString("en")} requests, ${live.errors.toLocaleString("en")} failed`;
  say(find("about"), `${counts} · up ${duration(live.up_s)} · ${live.glowplug}`);
  CHARTS.forEach((chart) => chart.update(live.series));
  showModels(live);
  showTrouble(live);
  showTargets(live);
  find("access").hidden = true;
  find("content").hidden = false;
}

async function askForToken(response) {
  state("locked", "busy");
  const body = token ? await response.json() : { error: "" };
  say(find("access-why"), body.error);
  find("access-why").hidden = !body.error;
  find("access").hidden = false;
  find("content").hidden = true;
  say(find("about"), "");
}

// Nobody is asked again while the page waits for a token.
async function look() {
  clearTimeout(timer);
  let locked = false;
  try {
    const response = await ask("v1/glowplug/live");
    if (response.ok) showLive(await response.json());
    else if (response.status === 401 || response.status === 403) { locked = true; await askForToken(response); }
    else state(`error ${response.status}`, "bad");
  } catch {
    state("no answer", "bad");
  }
  document.documentElement.dataset.ready = "";
  clearTimeout(timer);
  if (!document.hidden && !locked) timer = setTimeout(look, PERIOD_MS);
}

find("access-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = find("token").value.trim();
  find("token").value = "";
  look();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden && find("access").hidden) look(); });
look();
