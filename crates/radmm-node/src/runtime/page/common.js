// Small tools that the pages share. Text is set as text, never as markup: neighbours have a say in some of it.

const SVG = "http://www.w3.org/2000/svg";

export function el(name, attributes, ...children) {
  const svg = ["svg", "g", "rect", "path", "line", "circle", "text", "title"].includes(name);
  const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}

export const byId = (id) => document.getElementById(id);

// Draws a part of the page when what it shows has changed, so that a reader's selection and focus stay.
const drawn = new Map();
export function draw(id, data, render) {
  const key = JSON.stringify(data);
  if (drawn.get(id) === key) return;
  drawn.set(id, key);
  const place = byId(id);
  const bottom = place.scrollHeight - place.scrollTop - place.clientHeight < 4;
  place.replaceChildren(...render(data).filter((node) => node !== null));
  if (bottom) place.scrollTop = place.scrollHeight;
}

export function redraw(id) {
  drawn.delete(id);
}

// Rounded up, like everything about privacy.
export function epsilonText(value) {
  if (value === null) return "∞";
  if (value > 0 && value < 1e-3) {
    const exponent = Math.floor(Math.log10(value));
    const mantissa = Math.ceil((value / 10 ** exponent) * 10) / 10;
    return mantissa < 10 ? `${mantissa.toFixed(1)}e${exponent}` : `1.0e${exponent + 1}`;
  }
  return (Math.ceil(value * 1e4) / 1e4).toFixed(4);
}

export const deltaText = (delta) => (delta === 0 ? "0" : delta.toExponential());

export function timeText(seconds) {
  const date = new Date(1000 * seconds);
  const time = date.toLocaleTimeString("en-GB");
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString("en-CA")} ${time}`;
}

export function durationText(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

export function headline(label, value, of, note) {
  return el(
    "div",
    {},
    el("dt", {}, label),
    el("dd", { class: "value" }, value, of ? " " : "", of ? el("span", { class: "of" }, of) : ""),
    el("dd", {}, note),
  );
}

// A bar of what is spent and planned, up to the limit.
export function meter(label, total, note) {
  const { spent, planned, limit } = total;
  const end = limit ?? planned ?? spent;
  const share = (value) => (end === null || end === 0 ? 0 : value === null ? 100 : Math.min(100, (100 * value) / end));
  const full = limit !== null && spent !== null && share(spent) >= 99.995;
  const right = limit === null ? `planned ${epsilonText(planned)}` : `limit ${shortNumber(limit)}`;
  const words = `${label}: ε ${epsilonText(spent)} spent, ${epsilonText(planned)} when this study is over` + (limit === null ? "" : `, limit ${shortNumber(limit)}`);
  return el(
    "div",
    { class: "meter" },
    el("p", { class: "label" }, el("span", {}, el("strong", {}, label), ` ε ${epsilonText(spent)}`), el("span", {}, right)),
    el(
      "svg",
      { role: "img", "aria-label": words },
      el("rect", { class: "planned", height: "100%", width: `${share(planned)}%` }),
      el("rect", { class: full ? "full" : "spent", height: "100%", width: `${share(spent)}%` }),
    ),
    el("p", {}, note),
  );
}

export const shortNumber = (value) => String(Number(value.toPrecision(6)));

// A line over iterations, with a logarithmic scale of powers of ten.
export function plot(points, last, width) {
  const height = 230;
  const [left, right, top, bottom] = [52, width - 14, 12, height - 30];
  const positive = points.filter(([, y]) => y > 0);
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  if (positive.length === 0) {
    svg.append(el("text", { x: left, y: height / 2 }, "There are no distances yet."));
    return svg;
  }
  const logs = positive.map(([, y]) => Math.log10(y));
  const low = Math.floor(Math.min(...logs));
  const high = Math.max(low + 1, Math.ceil(Math.max(...logs)));
  const x = (t) => left + ((right - left) * t) / Math.max(1, last);
  const y = (value) => bottom - ((bottom - top) * (Math.log10(value) - low)) / (high - low);
  const stride = Math.ceil((high - low) / 5);
  for (let power = low; power <= high; power += stride) {
    const at = y(10 ** power);
    svg.append(el("line", { class: "grid", x1: left, x2: right, y1: at, y2: at }));
    const label = power >= -3 && power <= 3 ? String(Number((10 ** power).toPrecision(1))) : `1e${power}`;
    svg.append(el("text", { x: left - 8, y: at + 5, "text-anchor": "end" }, label));
  }
  const step = niceStep(last, width < 500 ? 4 : 8);
  for (let t = 0; t <= last; t += step) {
    svg.append(el("text", { x: x(t), y: height - 6, "text-anchor": t === 0 ? "start" : x(t) > right - 12 ? "end" : "middle" }, String(t)));
  }
  const path = positive.map(([t, value], index) => `${index ? "L" : "M"}${x(t).toFixed(1)} ${y(value).toFixed(1)}`);
  svg.append(el("path", { class: "curve", d: path.join("") }));
  const [t, value] = positive[positive.length - 1];
  svg.append(el("circle", { class: "end", cx: x(t), cy: y(value), r: 5 }));
  svg.setAttribute("aria-label", `The distance at iteration ${t} is ${value.toPrecision(3)}; it was ${positive[0][1].toPrecision(3)} at iteration ${positive[0][0]}.`);
  return svg;
}

function niceStep(last, count) {
  for (let base = 1; ; base *= 10) {
    for (const factor of [1, 2, 5]) {
      if (last / (base * factor) <= count) return base * factor;
    }
  }
}
