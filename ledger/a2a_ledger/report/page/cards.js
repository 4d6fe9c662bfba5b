// The card that the contract was frozen from, and another one of the same peer: by JSON pointer, and side by side.

const TERMS = /^\/(?:protocolVersion|url|preferredTransport|additionalInterfaces|supportedInterfaces|interfaces|security|securitySchemes|securityRequirements|authentication|supportsAuthenticatedExtendedCard|capabilities\/extensions|capabilities\/extendedAgentCard|skills\/\d+\/(?:id|security|securityRequirements))(?:\/|$)/;

/** Return [{pointer, old, new}], each value as JSON text, null where there is none; at most `most` of them. */
function differences(one, other, most = 500) {
  const found = [];
  const walk = (a, b, pointer) => {
    if (found.length > most) return;
    const plain = (value) => value === null || typeof value !== "object" || value instanceof NumberToken;
    if (a !== undefined && b !== undefined && !plain(a) && !plain(b) && Array.isArray(a) === Array.isArray(b)) {
      const keys = Array.isArray(a) ? Array.from({ length: Math.max(a.length, b.length) }, (_, at) => at) : [...new Set([...Object.keys(a), ...Object.keys(b)])];
      for (const key of keys) walk(a[key], b[key], `${pointer}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`);
    } else if (spelled(a) !== spelled(b)) found.push({ pointer, old: spelled(a), new: spelled(b) });
  };
  walk(one, other, "");
  return found;
}

function spelled(value) {
  if (value === undefined) return null;
  if (value instanceof NumberToken) return value.spelled;
  if (Array.isArray(value)) return `[${value.map(spelled).join(", ")}]`;
  if (value !== null && typeof value === "object") return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}: ${spelled(value[key])}`).join(", ")}}`;
  return JSON.stringify(value);
}

const isCard = ({ type, parts }) => (type === "card.fetched.v1" || type === "card.served.v1") && parts.body;

/** Choose the two cards: the one frozen from, and the one that a finding, an abort or a decision rests on, else the last that differs. */
function disputedCards(shown) {
  const records = [...shown.records.values()];
  const capture = records.find(({ type }) => type === "contract.captured.v1" || type === "contract.reconstructed.v1");
  const decided = records.filter(({ type }) => type === "freshness.decided.v1");
  const old = shown.named(capture?.data.fetch) || decided.map(({ data: d }) => shown.named(d.card)).find((one) => one && isCard(one));
  if (!old || !isCard(old)) return { old: null, now: null };
  const other = (record) => record && record.n !== old.n && isCard(record) && record.data.raw_hash !== old.data.raw_hash && record.stream === old.stream;
  const named = [
    ...records.filter(({ type }) => type === "violation.detected.v1").flatMap(({ data: d }) => d.evidence.map((ref) => shown.named(ref))),
    ...decided.map(({ data: d }) => shown.named(d.refetch)),
  ].filter(other);
  const cards = records.filter(other);
  const contract = cards.filter(({ data: d }) => d.contract_hash !== old.data.contract_hash);
  return { old, now: named[0] || contract[contract.length - 1] || cards[cards.length - 1] || null };
}

/** Say which lines of each text are not in the other: longest common subsequence, or none of it where that is too much. */
function changedLines(one, other) {
  const a = one.split("\n"), b = other.split("\n");
  const marks = [new Set(), new Set()];
  if (a.length * b.length > 4e6) return marks;
  const width = b.length + 1, long = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) long[i * width + j] = a[i] === b[j] ? long[(i + 1) * width + j + 1] + 1 : Math.max(long[(i + 1) * width + j], long[i * width + j + 1]);
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { i++; j++; }
    else if (j >= b.length || (i < a.length && long[(i + 1) * width + j] >= long[i * width + j + 1])) marks[0].add(i++);
    else marks[1].add(j++);
  }
  return marks;
}

function lined(text, marks, label) {
  const lines = text.slice(0, MOST_TEXT).split("\n").map((line, at) => [marks.has(at) ? make("mark", {}, ...visible(line, MOST_TEXT)) : visible(line, MOST_TEXT), "\n"]).flat(2);
  return make("pre", { class: "data", dir: "ltr", tabindex: "0", role: "group", "aria-label": label }, ...lines);
}

function cardText(record) {
  const text = new TextDecoder().decode(contentOf(record, "body"));
  return pretty(text) ?? text;
}

/** The part of the page about the cards. */
function cardSection(shown) {
  const { old, now } = disputedCards(shown);
  if (!old) return section("cards", "The agent card", make("p", {}, "The card that the contract was frozen from is not shown."));
  const title = "The agent card at the disputed point";
  const from = make("p", {}, "The contract was frozen from the card at ", place(old.n), ".");
  if (!now) return section("cards", title, from, make("p", {}, "The bundle shows no other card of this peer."), folded(`The card at #${old.n}`, () => octetsOf(old, "body")));
  const equalContract = old.data.contract_hash === now.data.contract_hash;
  const intro = make("p", {}, "Compared with the card at ", place(now.n), data(` of ${now.at}`), ": ", equalContract ? "the recorded contract hash is the same." : "the recorded contract hash is another one.");
  let body;
  try {
    const [a, b] = [old, now].map((record) => parseAny(textOf(contentOf(record, "body"), "the card")));
    const found = differences(a, b);
    const rows = found.slice(0, 200).map((one) => [code(one.pointer || "/"), one.old === null ? "–" : code(one.old), one.new === null ? "–" : code(one.new), TERMS.test(one.pointer) ? tag("may bear on the contract", "open") : tag("other", "mute")]);
    body = found.length ? table(`${counted(found.length, "difference")}, by JSON pointer`, ["Where", `Card at #${old.n}`, `Card at #${now.n}`, "Bears on"], rows, { class: "stack fixed" }) : make("p", {}, "Both say the same; only their spelling differs.");
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    body = make("p", { class: "problem" }, "They cannot be compared member by member: ", data(problem.message));
  }
  const [left, right] = [cardText(old), cardText(now)];
  const sides = folded("Both cards side by side", () => {
    const marks = changedLines(left, right);
    return make("div", { class: "sides" }, make("div", {}, make("h3", {}, `Card at #${old.n}`), lined(left, marks[0], `card at ${old.n}`)), make("div", {}, make("h3", {}, `Card at #${now.n}`), lined(right, marks[1], `card at ${now.n}`)));
  });
  return section("cards", title, from, intro, body, sides);
}
