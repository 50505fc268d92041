import { byId, deltaText, draw, el, epsilonText, headline, meter, plot, redraw } from "./common.js";

const INTERVAL = 500;
const SIZE = 560;
const RADIUS = 205;

let facts = null; // the latest report
let places = []; // where parties are drawn
let taken = 0; // steps that were read
const steps = []; // by party, then by iteration
let playing = true;
let cursor = 0; // the iteration that is shown, with a fraction while messages are on their way
let drawnAt = -1;
let before = null;

const calm = matchMedia("(prefers-reduced-motion: reduce)");

// The latest iteration that all parties have reached.
const reached = () => Math.min(...facts.parties.map((party) => party.iteration));

function stepAt(party, iteration) {
  const own = steps[party];
  for (let t = Math.min(iteration, own.length - 1); t > 0; t--) if (own[t]) return own[t];
  return null;
}

function take(report) {
  if (facts === null) {
    report.parties.forEach((_, party) => (steps[party] = []));
    byId("cursor").max = report.iterations;
    places = report.parties.map((_, party) => {
      const angle = (2 * Math.PI * party) / report.parties.length - Math.PI / 2;
      return [SIZE / 2 + RADIUS * Math.cos(angle), SIZE / 2 + RADIUS * Math.sin(angle)];
    });
  }
  facts = report;
  for (const step of report.since) steps[step.party][step.iteration] = step;
  taken = report.steps;
}

function buildGraph() {
  const svg = el("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": `${facts.parties.length} parties and ${facts.edges.length} connections between neighbours.` });
  for (const [one, other] of facts.edges) {
    const [[x1, y1], [x2, y2]] = [places[one], places[other]];
    svg.append(el("line", { class: "edge", x1, y1, x2, y2 }));
  }
  svg.append(el("g", { id: "flying" }));
  const radius = facts.parties.length > 12 ? 20 : 38;
  facts.parties.forEach((party, index) => {
    const [x, y] = places[index];
    const group = el(
      "g",
      { id: `party-${index}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
      el("circle", { class: "node", r: radius }),
      el("circle", { class: "core", r: radius - 6 }),
      el("path", { class: "arc" }),
      el("text", { class: "count", y: 6 }),
      el("text", { class: "name", y: y < SIZE / 2 - 1 ? -radius - 12 : radius + 24 }, party.name),
    );
    svg.append(group);
  });
  return [svg];
}

function arc(radius, share) {
  if (share <= 0) return "";
  const angle = 2 * Math.PI * Math.min(share, 0.9999);
  const [x, y] = [radius * Math.sin(angle), -radius * Math.cos(angle)];
  return `M0 ${-radius}A${radius} ${radius} 0 ${angle > Math.PI ? 1 : 0} 1 ${x.toFixed(2)} ${y.toFixed(2)}`;
}

function showGraph(at) {
  const radius = facts.parties.length > 12 ? 20 : 38;
  facts.parties.forEach((party, index) => {
    const group = byId(`party-${index}`);
    const step = stepAt(index, at);
    const shown = Math.min(at, party.iteration);
    group.setAttribute("class", `${step?.kind ?? ""} ${party.state}`);
    group.querySelector(".arc").setAttribute("d", arc(radius, shown / facts.iterations));
    group.querySelector(".count").textContent = radius > 30 ? shown : "";
  });
}

// The values of an iteration on their way to the neighbours.
function showMessages(at, share) {
  const flying = byId("flying");
  if (share <= 0 || share >= 1 || calm.matches) {
    flying.replaceChildren();
    return;
  }
  const eased = share * share * (3 - 2 * share);
  const dots = [];
  for (const [one, other] of facts.edges) {
    for (const [from, to] of [[one, other], [other, one]]) {
      const step = stepAt(from, at);
      if (step?.iteration !== at) continue;
      const [[x1, y1], [x2, y2]] = [places[from], places[to]];
      const length = Math.hypot(x2 - x1, y2 - y1);
      // On the right-hand side of the road.
      const [dx, dy] = [(-5 * (y2 - y1)) / length, (5 * (x2 - x1)) / length];
      dots.push(el("circle", { class: `message ${step.kind}`, r: 6, cx: (x1 + (x2 - x1) * eased + dx).toFixed(1), cy: (y1 + (y2 - y1) * eased + dy).toFixed(1) }));
    }
  }
  flying.replaceChildren(...dots);
}

function largest(at, value) {
  const values = facts.parties.map((_, party) => value(stepAt(party, at))).filter((one) => one !== undefined);
  return values.includes(null) ? null : Math.max(0, ...values);
}

function showPanel(at) {
  const kinds = facts.parties.map((_, party) => stepAt(party, at)?.kind);
  const data = kinds.filter((kind) => kind === "data").length;
  const what =
    at === 0
      ? "Nobody has asked anything yet."
      : data > 0
        ? "a data step: parties ask their rows once, pay, and send the answer with noise"
        : "a recycled step: computed from messages alone, and free";
  const spent = largest(at, (step) => step?.epsilon);
  const distance = largest(at, (step) => step?.consensus);
  draw("headlines", [at, facts.iterations, what, spent, distance], () => [
    headline("iteration", String(at), `of ${facts.iterations}`, what),
    headline("ε, largest of a party", epsilonText(spent), `of ${epsilonText(facts.planned)}`, "total over all messages so far"),
    headline("distance", distance ? distance.toPrecision(3) : "–", "", "between the two farthest neighbours"),
    headline("parties", String(facts.parties.length), "", `${facts.edges.length} connections, no server`),
  ]);
  draw("privacy", [spent, facts.planned], () => [
    meter("Every party", { spent, planned: facts.planned, limit: null }, `δ = ${deltaText(facts.delta)}, for ${facts.relation}.`),
  ]);
}

function showFigures(at) {
  const width = Math.max(280, byId("distance").clientWidth);
  const last = reached();
  draw("distance", [at, taken, width], () => {
    const points = [];
    for (let t = 1; t <= last; t++) points.push([t, largest(t, (step) => step?.consensus)]);
    return [plot(points.slice(0, at), facts.iterations, width), el("figcaption", {}, "The largest distance of two neighbours’ values. It is computed from messages, and costs nothing.")];
  });
  draw("epsilon", [at, taken, width], () => [staircase(at, last, width), el("figcaption", {}, "It rises at data steps. Recycled steps, between them, cost nothing.")]);
}

// Privacy spent, which rises at data steps alone.
function staircase(at, last, width) {
  const height = 230;
  const [left, right, top, bottom] = [58, width - 14, 12, height - 30];
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  const end = facts.planned ?? 1;
  const x = (t) => left + ((right - left) * t) / facts.iterations;
  const y = (epsilon) => bottom - ((bottom - top) * Math.min(epsilon, end)) / end;
  for (const share of [0, 0.5, 1]) {
    svg.append(el("line", { class: "grid", x1: left, x2: right, y1: y(share * end), y2: y(share * end) }));
    svg.append(el("text", { x: left - 8, y: y(share * end) + 5, "text-anchor": "end" }, epsilonText(share * end)));
  }
  svg.append(el("text", { x: left, y: height - 6 }, "0"), el("text", { x: right, y: height - 6, "text-anchor": "end" }, String(facts.iterations)));
  let path = `M${x(0)} ${y(0)}`;
  for (let t = 1; t <= Math.min(at, last); t++) {
    const spent = largest(t, (step) => step?.epsilon);
    if (spent !== null) path += `H${x(t).toFixed(1)}V${y(spent).toFixed(1)}`;
  }
  svg.append(el("path", { class: "curve asked", d: path }));
  svg.setAttribute("aria-label", `ε is ${epsilonText(largest(at, (step) => step?.epsilon))} at iteration ${at}, of ${epsilonText(facts.planned)} when the study is over.`);
  return svg;
}

function showRest() {
  document.title = `${facts.study} – radmm up`;
  draw("banner", facts.protects, (protects) => {
    const banner = byId("banner");
    banner.hidden = false;
    banner.classList.toggle("good", protects);
    return [el("strong", {}, protects ? "protects" : "REHEARSAL"), protects ? ": the noise is secret, and every answer was charged before it left" : ": noise repeats from the study’s seed, or there is none: nobody is protected"];
  });
  draw("study", facts.study, (study) => [study]);
  draw("facts", [facts.study_sha256, facts.algorithm, facts.parties.length], ([sha256, algorithm, count]) => [`${count} parties, ${algorithm}, study `, el("code", { title: sha256 }, sha256.slice(0, 12))]);
  const killed = facts.parties.filter((party) => party.state === "killed").map((party) => party.name);
  const words = facts.over ? "the run is over" : killed.length ? `waiting for ${killed.join(", ")}` : reached() === facts.iterations ? "finishing" : "running";
  draw("state", words, () => {
    byId("state").className = `pill ${facts.over ? "over" : killed.length ? "stuck" : "running"}`;
    return [words];
  });
  draw("parties", facts.parties, (parties) => parties.map(partyCard));
  draw("messages", facts.messages, (messages) => messages.map((one) => el("li", one.warning ? { class: "warning" } : {}, el("strong", {}, one.party), el("span", {}, one.text))));
}

function partyCard(party) {
  const row = (name, value) => [el("dt", {}, name), el("dd", {}, value)];
  const link = party.link && facts.over === false ? el("a", { href: party.link, target: "_blank", rel: "noopener" }, "open") : "ended with its process";
  return el(
    "li",
    {},
    el("h3", {}, party.name, el("span", { class: `state ${party.state}` }, party.state)),
    el("dl", {}, ...row("iteration", `${party.iteration} of ${facts.iterations}`), ...row("rows", party.rows.toLocaleString("en-GB")), ...row("its own page", link)),
  );
}

function frame(now) {
  const passed = before === null ? 0 : (now - before) / 1000;
  before = now;
  if (facts !== null) {
    const last = reached();
    if (playing) cursor = Math.min(last, cursor + passed * Number(byId("speed").value));
    cursor = Math.min(cursor, last);
    // The values of iteration k are on their way from k to k + 1.
    const at = Math.floor(cursor);
    if (at !== drawnAt) {
      drawnAt = at;
      showGraph(at);
      showPanel(at);
      showFigures(at);
      byId("at").textContent = at;
      if (document.activeElement !== byId("cursor") || playing) byId("cursor").value = at;
      byId("play").textContent = playing && at < facts.iterations ? "Pause" : "Play";
    }
    showMessages(at, cursor - at);
  }
  requestAnimationFrame(frame);
}

function setPlaying(value) {
  playing = value;
  drawnAt = -1;
}

byId("play").addEventListener("click", () => {
  if (facts !== null && Math.floor(cursor) >= facts.iterations) {
    cursor = 0;
    setPlaying(true);
  } else {
    setPlaying(!playing);
  }
});
byId("live").addEventListener("click", () => {
  if (facts !== null) cursor = reached();
  setPlaying(true);
});
byId("cursor").addEventListener("input", (event) => {
  cursor = Number(event.target.value);
  setPlaying(false);
});

function showLost(text) {
  draw("lost", text, () => {
    byId("lost").hidden = text === null;
    return text === null ? [] : [text];
  });
}

async function poll() {
  try {
    const response = await fetch(`api/network?since=${taken}`, { cache: "no-store", redirect: "error" });
    if (!response.ok) throw new Error(response.status);
    const first = facts === null;
    take(await response.json());
    if (first) draw("graph", 0, buildGraph);
    drawnAt = -1;
    showLost(null);
    showRest();
  } catch {
    showLost("radmm up has ended. What it said last can still be played.");
  }
  setTimeout(poll, INTERVAL);
}

addEventListener("resize", () => {
  redraw("distance");
  redraw("epsilon");
  drawnAt = -1;
});

poll();
requestAnimationFrame(frame);
