// JSON in two ways: the one canonical spelling of the record profile (docs/format.md 3.2), and any JSON, read strictly.

const MOST_LEVELS = 16;
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** Read octets that are exactly the canonical spelling of a value. */
function parseCanonical(octets, what) {
  const text = textOf(octets, what);
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Problem(`${what}: expected JSON`);
  }
  checkProfile(value, MOST_LEVELS, what);
  if (canonical(value) !== text) throw new Problem(`${what}: not the canonical spelling (RFC 8785)`);
  return value;
}

function checkProfile(value, levels, what) {
  if (typeof value === "string") {
    if (LONE.test(value)) throw new Problem(`${what}: holds a lone surrogate`);
  } else if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new Problem(`${what}: holds a number that is no integer within ±(2^53-1)`);
  } else if (value !== null && typeof value === "object") {
    if (levels <= 0) throw new Problem(`${what}: more than ${MOST_LEVELS} levels`);
    for (const key of Object.keys(value)) {
      if (/[^\0-\x7f]/.test(key)) throw new Problem(`${what}: holds a key outside of ASCII`);
      checkProfile(value[key], levels - 1, what);
    }
  }
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const has = (value, key) => Object.prototype.hasOwnProperty.call(value, key);
const equal = (one, other) => one !== undefined && other !== undefined && canonical(one) === canonical(other);
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;

/** Say whether an object has exactly these members. */
function exactly(value, names) {
  return isObject(value) && Object.keys(value).length === names.length && names.every((name) => has(value, name));
}

class NumberToken {
  constructor(spelled) { this.spelled = spelled; }
}

const TOKEN = /[ \t\n\r]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null))/y;
const DEEPEST = 200;

/** Read any JSON text; a key that stands twice is refused. Numbers stay as they are spelled. */
function parseAny(text) {
  let at = 0;
  const next = () => {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (match === null) throw new Problem(`no JSON from character ${at} on`);
    at = TOKEN.lastIndex;
    return match;
  };
  const value = (levels, match) => {
    if (levels < 0) throw new Problem(`nested deeper than ${DEEPEST} levels`);
    const [, mark, string, number, word] = match;
    if (string !== undefined) return JSON.parse(string);
    if (number !== undefined) return new NumberToken(number);
    if (word !== undefined) return { true: true, false: false, null: null }[word];
    if (mark === "[") return list(levels);
    if (mark === "{") return object(levels);
    throw new Problem(`no JSON before character ${at}`);
  };
  const list = (levels) => {
    const items = [];
    let match = next();
    if (match[1] === "]") return items;
    for (;;) {
      items.push(value(levels - 1, match));
      const mark = next()[1];
      if (mark === "]") return items;
      if (mark !== ",") throw new Problem(`no JSON before character ${at}`);
      match = next();
    }
  };
  const object = (levels) => {
    const members = Object.create(null);
    let match = next();
    if (match[1] === "}") return members;
    for (;;) {
      if (match[2] === undefined || next()[1] !== ":") throw new Problem(`no JSON before character ${at}`);
      const key = JSON.parse(match[2]);
      if (key in members) throw new Problem(`the key ${JSON.stringify(key).slice(0, 80)} stands twice`);
      members[key] = value(levels - 1, next());
      const mark = next()[1];
      if (mark === "}") return members;
      if (mark !== ",") throw new Problem(`no JSON before character ${at}`);
      match = next();
    }
  };
  const found = value(DEEPEST, next());
  if (!/^[ \t\n\r]*$/.test(text.slice(at))) throw new Problem(`something follows the JSON at character ${at}`);
  return found;
}

/** Set JSON text in lines without changing one of its tokens; null where it is no JSON. */
function pretty(text) {
  const lines = [];
  let line = "", level = 0, at = 0, before = "";
  const turn = () => { lines.push(line); line = "  ".repeat(Math.min(level, 40)); };
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (match === null) return /^[ \t\n\r]*$/.test(text.slice(at)) && level === 0 ? [...lines, line].join("\n") : null;
    at = TOKEN.lastIndex;
    const token = match[1] || match[2] || match[3] || match[4];
    if (token === "}" || token === "]") {
      level--;
      if (before !== "{" && before !== "[") turn();
    } else if (before === "{" || before === "[") turn();
    line += token;
    if (token === "{" || token === "[") level++;
    else if (token === ",") turn();
    else if (token === ":") line += " ";
    before = token;
  }
  return level === 0 ? [...lines, line].join("\n") : null;
}
