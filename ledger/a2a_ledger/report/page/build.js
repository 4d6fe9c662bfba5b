// Making elements. Nothing that comes from a bundle is ever markup: it goes in as text, with what could mislead made visible.

const UNSEEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

/** Make an element: `make("p", {class: "soft"}, "text", child, …)`. Text goes in as it is: ours, or made visible by `data`. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const LONGEST = 400;

/** Text from outside as nodes: controls, bidi marks and what cannot be seen are named, and a long text is cut and counted. */
function visible(value, most = LONGEST) {
  const whole = String(value);
  const text = whole.length > most ? whole.slice(0, most) : whole;
  const nodes = [];
  let at = 0;
  for (const match of text.matchAll(UNSEEN)) {
    nodes.push(text.slice(at, match.index));
    nodes.push(make("span", { class: "ctl" }, `U+${match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`));
    at = match.index + match[0].length;
  }
  nodes.push(text.slice(at));
  if (whole.length > most) nodes.push(make("span", { class: "soft" }, ` … (${whole.length} characters)`));
  return nodes;
}

const data = (value, most) => make("span", { class: "data", dir: "auto" }, ...visible(value, most));
const code = (value) => make("code", { class: "data", dir: "ltr" }, ...visible(value));

function list(rows) {
  return make("dl", {}, ...rows.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

/** A table with a caption, heads of columns, and the first cell of each row as its head. */
function table(caption, heads, rows, attributes = {}) {
  return make("div", { class: "scroll" }, make("table", { class: "stack", ...attributes },
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...rows.map(([first, ...cells]) => make("tr", {}, make("th", { scope: "row" }, first), ...cells.map((cell) => make("td", {}, cell)))))));
}

/** What is folded away is made when it is opened, so that a large bundle stays quick. */
function folded(title, content) {
  const element = make("details", {}, make("summary", {}, title));
  element.addEventListener("toggle", () => {
    if (element.open && element.childElementCount === 1) element.append(...[content()].flat());
  });
  return element;
}

const MOST_TEXT = 256 * 1024;
const block = (text, label) => make("pre", { class: "data", dir: "ltr", tabindex: "0", role: "group", "aria-label": label }, ...visible(text, MOST_TEXT));

function section(id, title, ...content) {
  return make("section", { class: "card", id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, title), ...content);
}

const tag = (text, tone) => make("span", { class: `tag ${tone}` }, text);
const counted = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
