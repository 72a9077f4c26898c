// Models with their versions, and the last errors.

const STATES = { AVAILABLE: "good", LOADING: "busy", START: "busy", UNLOADING: "busy", END: "" };

function fact(name, value) { return make("div", null, make("dt", null, name), make("dd", null, value)); }

function versionFacts(version) {
  const facts = version.labels.map((label) => fact("label", label));
  if (version.engine) facts.push(fact("engine", version.engine));
  if (version.state === "AVAILABLE") {
    facts.push(fact("workers", version.workers), fact("answers a second", number(version.rate)));
    if (version.waiting) facts.push(fact("waiting", version.waiting));
    if (version.bytes) facts.push(fact("memory", bytes(version.bytes)));
    facts.push(fact("ready after", duration(version.ready_after_s)));
    if (version.restarts) facts.push(fact("restarts", version.restarts));
  }
  return facts;
}

function loading(version) {
  const text = `${version.workers_ready} of ${version.workers_wanted} workers warm, ${duration(version.elapsed_s)}`;
  const left = version.eta_s === undefined ? "" : `, about ${duration(version.eta_s)} left`;
  return make("p", { class: "why soft" },
    make("progress", { max: version.workers_wanted, value: version.workers_ready, "aria-label": "Workers that are warm" }), ` ${text}${left}`);
}

function versionRow(version) {
  const failed = version.state === "END" && version.error;
  const facts = versionFacts(version);
  return make("li", { class: "version" },
    make("span", { class: "number" }, `version ${version.number}`),
    make("span", null, make("span", { class: `pill ${failed ? "bad" : STATES[version.state]}` }, version.state)),
    make("div", { class: "more" },
      facts.length ? make("dl", { class: "facts" }, ...facts) : null,
      version.workers_wanted === undefined ? null : loading(version),
      version.waiting_for ? make("p", { class: "why soft" }, `waits for: ${version.waiting_for}`) : null,
      version.problem ? make("p", { class: "why bad" }, version.problem) : null,
      version.error ? make("p", { class: "why bad" }, version.error) : null));
}

function modelCard(model) {
  const empty = model.expected ? "nobody has looked at its URL yet" : model.trouble || "no version was found";
  return make("article", { class: "card model" }, make("h3", null, model.name),
    model.versions.length ? make("ul", { class: "versions" }, ...model.versions.map(versionRow)) : make("p", { class: "soft" }, empty),
    model.more_versions ? make("p", { class: "hint" }, `and ${model.more_versions} more versions`) : null);
}

function showModels(live) {
  const cards = live.models.map(modelCard);
  if (live.more_models) cards.push(make("p", { class: "hint" }, `and ${live.more_models} more models`));
  show(find("models"), cards.length ? cards : [make("p", { class: "soft" }, "No model is configured.")]);
}

function troubleEntry(entry, now) {
  const about = [entry.model, entry.version && `version ${entry.version}`].filter(Boolean).join(" ");
  return make("li", null,
    make("p", { class: "head" },
      make("span", { class: `pill ${entry.code ? "" : "bad"}` }, entry.code || "server"), make("strong", null, entry.what),
      about ? make("span", null, about) : null, entry.count > 1 ? make("span", { class: "soft" }, `${entry.count} times`) : null,
      make("time", { datetime: new Date(entry.at * 1000).toISOString() }, `${duration(Math.max(0, now - entry.at))} ago`)),
    make("p", { class: "text" }, entry.text));
}

function showTrouble(live) {
  const entries = live.trouble.map((entry) => troubleEntry(entry, live.now));
  show(find("trouble"), entries.length ? entries : [make("li", { class: "soft" }, "None so far.")]);
}
