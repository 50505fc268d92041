import { byId, deltaText, draw, durationText, el, epsilonText, headline, meter, plot, redraw, shortNumber, timeText } from "./common.js";

const INTERVAL = 1000;

const STATES = {
  away: "away",
  awaited: "awaited",
  heard: "heard",
  disagrees: "disagrees",
  done: "has everything",
};

let report = null;
let lostSince = null;

function show() {
  const r = report;
  document.title = `${r.iteration}/${r.iterations} ${r.party} – radmm`;
  draw("banner", [r.protects, r.caveat], ([protects, caveat]) => {
    const banner = byId("banner");
    banner.hidden = false;
    banner.classList.toggle("good", protects);
    return [el("strong", {}, protects ? "protects" : "REHEARSAL"), protects ? ": the noise is secret, and every answer was charged before it left" : `: ${caveat.replace("a rehearsal: ", "")}`];
  });
  draw("party", r.party, (name) => [name]);
  draw("study", [r.study, r.study_sha256, r.algorithm, r.parties], ([study, sha256, algorithm, parties]) => [
    `study ${study} `,
    el("code", { title: sha256 }, sha256.slice(0, 12)),
    `, ${algorithm}, ${parties} ${parties === 1 ? "party" : "parties"}`,
  ]);
  showHealth(r);
  showHeadlines(r);
  draw("privacy", [r.privacy, r.finished], ([privacy, finished]) => (privacy ? showPrivacy(privacy, finished) : [el("p", { class: "quiet" }, "The node is starting.")]));
  draw("distance", [r.distances, r.iterations, byId("distance").clientWidth], ([distances, iterations, width]) => [
    plot(distances, iterations, Math.max(280, width)),
    el("figcaption", {}, `The largest distance of a neighbour’s value from this party’s, by iteration. It is computed from messages, and costs nothing.`),
  ]);
  draw("neighbours", r.neighbours, (neighbours) => neighbours.map(neighbour));
  draw("findings", [r.suspicions, r.evidence, r.refused], showFindings);
  draw("messages", r.messages, (messages) => messages.map(message));
  draw("files", [r.files, r.finished, r.health.state === "stopped"], showFiles);
  draw("identity", [r.key, r.rows, r.listening, r.started], ([key, rows, listening, started]) => [
    `${r.party} is `,
    el("code", {}, key),
    `, has ${rows.toLocaleString("en-GB")} rows, ${listening ? `listens on ${listening}` : "only dials"}, and was started at ${timeText(started)}.`,
  ]);
  draw("updated", timeText(r.time), (time) => [`Updated at ${time}.`]);
}

function showHealth(r) {
  const { state, for: names } = r.health;
  const words = r.finished && state === "ready" ? "done" : state === "stopped" ? (r.finished ? "over" : "stopped") : state === "waiting" ? `waiting for ${names.join(", ")}` : state;
  draw("health", [state, words], () => {
    byId("health").className = `pill ${words === "over" ? "ready" : state}`;
    return [words];
  });
}

function showHeadlines(r) {
  const [asked, all] = r.data_steps;
  const kind = { start: "no step yet", data: "a data step, which asked the rows", recycled: "a recycled step, which cost nothing" }[r.kind];
  const waiting = r.waiting_for.filter((one) => one.state !== "awaited" || r.time - one.since > 2);
  const wait = waiting.map((one) => `${one.name} since ${timeText(one.since)}`).join(", ");
  const left = r.seconds_left === null || wait ? "–" : durationText(r.seconds_left);
  const rows = r.privacy?.rows.at(-1);
  draw("headlines", [r.iteration, r.iterations, kind, asked, all, r.pace, left, wait, r.finished, r.privacy, r.distance], () => [
    headline("iteration", String(r.iteration), `of ${r.iterations}`, kind),
    r.finished
      ? headline("time left", "none", "", wait ? `waiting for ${wait} to acknowledge` : "all iterations are done")
      : headline("time left", left, "", wait ? `waiting for ${wait}` : r.pace === null ? "the pace is not known yet" : `${shortNumber(Number(r.pace.toPrecision(3)))} iterations a minute`),
    headline("ε of this study", r.privacy ? epsilonText(r.privacy.study.spent) : "–", r.privacy ? `of ${epsilonText(r.privacy.study.planned)}` : "", `${asked} of ${all} data steps`),
    rows
      ? headline("ε on these rows", epsilonText(rows.spent), `limit ${shortNumber(rows.limit)}`, "all studies together")
      : headline("ε on these rows", "–", "", r.privacy ? "a rehearsal without a limit" : "starting"),
    headline("distance", r.distance === 0 ? "–" : r.distance.toPrecision(3), "", "of the farthest neighbour’s value"),
  ]);
}

function showPrivacy(privacy, finished) {
  const at = (total) => `at δ = ${deltaText(total.delta)}`;
  const { study, rows, relation } = privacy;
  const parts = [
    meter("This study", study, finished ? `The study is over: this is its total, ${at(study)}.` : `When the study is over: ${epsilonText(study.planned)}, ${at(study)}.`),
  ];
  for (const total of rows) {
    const reached = total.spent !== null && total.spent >= total.limit * (1 - 1e-6);
    const ahead = reached
      ? "The limit is reached: no more questions are answered from these rows."
      : finished
        ? `The study is over; the limit is ${shortNumber(total.limit)}.`
        : `When this study is over: ${epsilonText(total.planned)} of ${shortNumber(total.limit)}. The limit does not stop this study; one that goes beyond it does not start.`;
    parts.push(meter("All studies on these rows", total, `${ahead} The total is ${at(total)}.`));
  }
  parts.push(el("p", { class: "quiet" }, `Every ε is a total over all messages, for ${relation}, and rounded up. ${report.caveat[0].toUpperCase()}${report.caveat.slice(1)}.`));
  return parts;
}

function neighbour(one) {
  const row = (name, value) => [el("dt", {}, name), el("dd", {}, value)];
  return el(
    "li",
    {},
    el("h3", {}, one.name, el("span", { class: `state ${one.state}` }, STATES[one.state] ?? one.state)),
    el(
      "dl",
      {},
      ...row("since", timeText(one.since)),
      ...row("iteration", String(one.iteration)),
      ...row("last heard", one.heard === null ? "never" : timeText(one.heard)),
      ...row("address", one.address ?? "it dials this party"),
      ...(one.dialled_by === null ? [] : row("dialled by", one.dialled_by)),
      ...row("key", el("code", { title: one.key }, shortKey(one.key))),
    ),
  );
}

const shortKey = (key) => `${key.slice(0, 16)}…${key.slice(-8)}`;

function showFindings([suspicions, evidence, refused]) {
  const item = (kind) => (one) =>
    el("li", {}, el("span", { class: "kind" }, `${kind}: ${one.peer}`), one.time === null ? "" : ` at ${timeText(one.time)}`, `: ${one.what}`);
  const items = [...evidence.map(item("evidence")), ...suspicions.map(item("suspicion"))];
  const strangers = refused === 0 ? null : el("p", { class: "quiet" }, `${refused} ${refused === 1 ? "connection of a stranger was" : "connections of strangers were"} rejected.`);
  if (items.length === 0) {
    return [el("p", { class: "quiet" }, "Nothing was found."), strangers];
  }
  const kept = evidence.length === 0 ? null : el("p", { class: "quiet" }, "Evidence is kept in the state folder, with signatures: radmm ledger show.");
  return [el("ul", { class: "findings" }, ...items), kept, strangers];
}

function message(one) {
  const text = one.count > 1 ? `${one.text} (${one.count} times)` : one.text;
  const time = el("time", { datetime: new Date(1000 * one.time).toISOString() }, timeText(one.time));
  return el("li", one.warning ? { class: "warning" } : {}, time, el("span", {}, text));
}

function showFiles([files, finished, stopped]) {
  const names = {
    "model.json": "the classifier",
    "privacy-statement.json": "the signed statement of what was spent",
    "transcript.jsonl": "every message with its signature, for others to check",
    "report.html": "the report",
    "statement.html": "the statement, to read",
  };
  if (files.length === 0) {
    return [el("p", { class: "quiet" }, finished ? "No files were written." : "Model, statement and transcript are written when the study is over.")];
  }
  const item = (name) => el("li", {}, stopped ? el("code", {}, name) : el("a", { href: `files/${encodeURIComponent(name)}` }, name), names[name] ? `: ${names[name]}` : "");
  return [el("ul", { class: "files" }, ...files.map(item))];
}

function showLost(text, isGood) {
  draw("lost", text, () => {
    byId("lost").hidden = text === null;
    byId("lost").classList.toggle("good", isGood === true);
    return text === null ? [] : [text];
  });
}

// The last state of a node that has ended. Its files are where its site file says, and not behind links any more.
function ended() {
  const words = report.finished ? "The study is over, and the node has ended." : "The node has stopped: the same command resumes, if nothing below needs you.";
  showLost(`${words} Below is what it said last; its files are in its folder of results.`, report.finished);
}

async function poll() {
  try {
    const response = await fetch("api/status", { cache: "no-store", redirect: "error" });
    if (response.status === 401 || response.status === 403) {
      showLost("The node was started again, and its page has a new address: radmm page --site FILE prints the new link. Below is what the earlier process said last.");
    } else {
      report = await response.json();
      lostSince = null;
      showLost(null);
      show();
      if (report.health.state === "stopped") ended();
    }
  } catch {
    lostSince ??= Math.floor(Date.now() / 1000);
    if (report?.health.state === "stopped") ended();
    else showLost(`The node does not answer since ${timeText(lostSince)}: it was stopped. Below is what it said last.`);
  }
  setTimeout(poll, INTERVAL);
}

addEventListener("resize", () => {
  redraw("distance");
  if (report) show();
});

poll();
