// The form that tries a prediction: it makes a body that fits the signature, sends it, and shows what comes back.

const MOST_SHOWN = 20000;
const MOST_LISTED = 200;
const MOST_MADE = 4000000;
const STAND_IN = /"(zeros|ones|random) \[([\d,\s]*)\]"/g;
const MAKERS = { zeros: () => 0, ones: () => 1, random: () => Math.round(Math.random() * 1e4) / 1e4 };
const trial = { signatures: {}, model: null, drafts: new Map() };

function nested(shape, value) {
  if (!shape.length) return value();
  return Array.from({ length: shape[0] }, () => nested(shape.slice(1), value));
}

function size(shape) { return shape.reduce((product, one) => product * one, 1); }

function written(body) {
  return body.replace(STAND_IN, (_, kind, text) => {
    const shape = text.split(",").filter((one) => one.trim()).map(Number);
    if (size(shape) > MOST_MADE) throw new RangeError(`${shape.join(" × ")} are too many numbers for this page`);
    return JSON.stringify(nested(shape, MAKERS[kind]));
  });
}

function example(info) {
  const shape = ((info.tensor_shape || {}).dim || []).map((dim) => Math.max(1, Number(dim.size)));
  if (info.dtype === "DT_STRING") return nested(size(shape) > MOST_LISTED ? [1] : shape, () => "");
  if (size(shape) > MOST_LISTED) return `zeros [${shape.join(", ")}]`;
  return nested(shape, info.dtype === "DT_BOOL" ? () => false : () => 0);
}

function method(signature) {
  const name = ((signature && signature.method_name) || "").split("/").pop();
  return name === "classify" || name === "regress" ? name : "predict";
}

function draft(name, signature) {
  const head = `{\n "signature_name": ${JSON.stringify(name)},\n`;
  if (method(signature) !== "predict") return `${head} "examples": [{"x": 0.0}]\n}`;
  const inputs = Object.entries(signature.inputs || {}).map(([key, info]) => `  ${JSON.stringify(key)}: ${JSON.stringify(example(info))}`);
  return `${head} "inputs": {\n${inputs.join(",\n")}\n }\n}`;
}

function place() {
  const { name, version } = trial.model;
  return `v1/models/${encodeURIComponent(name)}${version === null ? "" : `/versions/${version}`}`;
}

const draftKey = () => JSON.stringify([trial.model, find("trial-signature").value]);

function chooseSignature() {
  const name = find("trial-signature").value;
  const signature = trial.signatures[name];
  find("trial-body").value = signature ? trial.drafts.get(draftKey()) || draft(name, signature) : "";
  say(find("trial-path"), signature ? `POST /${place()}:${method(signature)}` : "");
  find("trial-send").disabled = !signature;
  find("trial").dataset.signature = signature ? name : "";
}

async function chooseModel() {
  const chosen = find("trial-model").value;
  trial.model = chosen ? JSON.parse(chosen) : null;
  const asked = trial.model;
  let found = {};
  if (asked) {
    try {
      const response = await ask(`${place()}/metadata`);
      if (response.ok) found = (await response.json()).metadata.signature_def.signature_def;
    } catch { found = {}; }
    if (trial.model !== asked) return;
  }
  trial.signatures = found;
  const names = Object.keys(found).sort((a, b) => (b === "serving_default") - (a === "serving_default") || (a < b ? -1 : 1));
  find("trial-signature").replaceChildren(...names.map((name) => make("option", { value: name }, name)));
  chooseSignature();
}

function showTargets(live) {
  const options = [];
  for (const model of live.models) {
    const ready = model.versions.filter((version) => version.state === "AVAILABLE");
    if (ready.length) options.push([`${model.name}, newest version`, { name: model.name, version: null }]);
    if (ready.length > 1) for (const version of ready) options.push([`${model.name}, version ${version.number}`, { name: model.name, version: version.number }]);
  }
  const select = find("trial-model");
  const before = select.value;
  const fresh = options.map(([text, target]) => make("option", { value: JSON.stringify(target) }, text));
  if (select.children.length === fresh.length && fresh.every((option, k) => option.isEqualNode(select.children[k]))) return;
  select.replaceChildren(...fresh);
  if (fresh.some((option) => option.value === before)) select.value = before;
  if (select.value !== before || !fresh.length) chooseModel();
}

function showAnswer(outcome, text, bad) {
  const line = find("trial-outcome");
  say(line, outcome);
  line.className = bad ? "bad" : "soft";
  const cut = text.length > MOST_SHOWN;
  say(find("trial-answer"), cut ? `${text.slice(0, MOST_SHOWN)}\n… and ${(text.length - MOST_SHOWN).toLocaleString("en")} characters more` : text);
  find("trial-answer").hidden = !text;
  find("trial-result").hidden = false;
}

async function send(event) {
  event.preventDefault();
  const button = find("trial-send");
  button.disabled = true;
  try {
    const body = written(find("trial-body").value);
    const began = performance.now();
    const response = await ask(`${place()}:${method(trial.signatures[find("trial-signature").value])}`, { method: "POST", body });
    const text = await response.text();
    showAnswer(`${response.status} ${response.statusText}, ${milliseconds(performance.now() - began)}, ${bytes(text.length)}`, text, !response.ok);
  } catch (error) {
    showAnswer(error instanceof RangeError ? error.message : "The server did not answer.", "", true);
  } finally {
    button.disabled = false;
  }
}

find("trial-model").addEventListener("change", chooseModel);
find("trial-signature").addEventListener("change", chooseSignature);
find("trial-body").addEventListener("input", () => trial.drafts.set(draftKey(), find("trial-body").value));
find("trial").addEventListener("submit", send);
