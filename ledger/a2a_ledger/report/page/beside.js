// Events held against each other, and against the streams that they may stand in (docs/format.md 2 and 12, step 11).

const STREAM_NAME = new RegExp(`^(?:${TABLES.stream_names})$`);
const PLACES = new Map(Object.entries(TABLES.places).map(([type, pattern]) => [type, new RegExp(`^(?:${pattern})$`)]));
const FIRST_OF_URL = 1024;

function misplaced(stream, type) {
  if (TABLES.stream_kinds.includes(stream.split(":")[0]) && !STREAM_NAME.test(stream)) return "stands in what is no name of a stream";
  return PLACES.has(type) && !PLACES.get(type).test(stream) ? `a ${type} stands in a stream where none belongs` : "";
}

const idsOf = ({ data }) => JSON.stringify([data.task_id ?? null, data.context_id ?? null]);

/** What events have in common: peers of streams, urls of peers, ids that messages gave, and the message behind each event. */
function besides(shown) {
  const found = { peers: new Map(), urls: new Map(), ids: new Map(), frozen: new Map(), asked: new Map(), following: new Map() }, waiting = new Map();
  const first = (map, key, value) => { if (!map.has(key)) map.set(key, value); };
  for (const record of [...shown.records.values()].sort((a, b) => a.n - b.n)) {
    const { n, stream, type, data: d } = record;
    if (typeof d.peer === "string") first(found.peers, stream, d.peer);
    if (typeof d.peer === "string" && typeof d.peer_url === "string" && d.peer_url) first(found.urls, d.peer, d.peer_url);
    if (type === "contract.captured.v1") first(found.frozen, stream, record);
    if (type === "message.recorded.v1") {
      if (d.leg === "request" && d.direction === "out") first(found.asked, stream, n);
      for (const before of waiting.get(stream) || []) found.following.set(before, record);
      waiting.delete(stream);
      for (const message of [record, shown.named(d.answers)]) if (message) first(found.ids, `${message.n} ${idsOf(record)}`, n);
    }
    if (!waiting.has(stream)) waiting.set(stream, []);
    waiting.get(stream).push(n);
  }
  return found;
}

/** Compare two fields, where either may have `*` for octets of a secret. */
function alike(one, other) {
  if (typeof one !== "string" || typeof other !== "string") return one === other;
  const [a, b] = [[...one], [...other]];
  return a.length === b.length && a.every((character, at) => character === b[at] || character === "*" || b[at] === "*");
}

function* peerFaults({ stream, data: d }, beside) {
  if (typeof d.peer !== "string") return;
  const [kind, owner] = stream.split(":");
  if ((kind === "peer" && d.peer !== owner) || (kind === "task" && d.peer !== beside.peers.get(stream))) yield "its peer is not that of its stream";
  if (typeof d.peer_url === "string" && d.peer_url && d.peer_url.slice(0, FIRST_OF_URL) !== beside.urls.get(d.peer).slice(0, FIRST_OF_URL)) yield "its peer_url is not that of its peer";
}

function* answerFaults({ n, stream, data: d }, asked) {
  const out = (d.leg === "request") !== (d.side === "server");
  if (LEGS.includes(d.leg) && ["in", "out"].includes(d.direction) && d.direction !== (out ? "out" : "in")) yield "its direction is not that of its leg";
  if (!asked) return;
  if (asked.type !== "message.recorded.v1" || !["request", "push"].includes(asked.data.leg)) yield `answers event ${asked.n}, which is no request`;
  else if (asked.stream !== stream || asked.n > n) yield `answers event ${asked.n}, which is not before it in its stream`;
  else {
    const own = ["error", "stream-end"].includes(d.leg), names = ["url", "binding", "side", ...["method", "method_spelled"].filter((name) => !own || has(d, name))];
    for (const name of names) if (!alike(d[name], asked.data[name])) yield `its ${name} is not that of the request at ${asked.n}`;
  }
}

/** A card that an event names is of its peer, was there before it, and says the same in these fields. */
function* cardFaults({ n, data: d }, fetch, names = []) {
  if (!fetch) return;
  if ((has(fetch.data, "peer") && fetch.data.peer !== d.peer) || fetch.n > n) yield `names event ${fetch.n}, which is of another peer, or later`;
  for (const name of names) if (has(d, name) !== has(fetch.data, name) || (has(d, name) && !equal(d[name], fetch.data[name]))) yield `its ${name} is not that of the fetch at ${fetch.n}`;
}

function* pinFaults({ log, stream, type, data: d }) {
  if (type !== "contract.captured.v1" || d.side === "server") return; // then it is what the client attached
  const frozen = { contractHash: d.contract_hash, form: d.form, origin: log, task: stream.replace(/^task:/, "") };
  for (const [name, value] of Object.entries(frozen)) if (isObject(d.pin) && has(d.pin, name) && d.pin[name] !== value) yield `its pin has another ${name} than is frozen`;
}

/** A contract is frozen once, before anything is sent under it. */
function* frozenFaults({ n, stream, type, data: d }, { frozen, asked }) {
  if (type !== "contract.captured.v1") return;
  const first = frozen.get(stream);
  if (d.contract_hash !== first.data.contract_hash) yield `freezes another contract than event ${first.n}`;
  if (first.n === n && d.side !== "server" && asked.get(stream) < n) yield `was frozen after the first request of its task, event ${asked.get(stream)}`;
}

function* refetchFaults(record, shown) {
  const { data: d } = record, card = shown.named(d.card), again = shown.named(d.refetch);
  yield* cardFaults(record, card);
  yield* cardFaults(record, again);
  const outcome = isObject(d.inputs.refetch) ? d.inputs.refetch.outcome : undefined;
  if (typeof outcome !== "string" || !again) return;
  const failed = again.type !== "card.fetched.v1" || again.data.flags.includes("not-a-card"), found = again.data.contract_hash, before = card?.data.contract_hash;
  let fits = failed === (outcome === "failed") && (outcome !== "304" || again.data.status === 304);
  if (!failed && found === undefined) fits = fits && outcome === "undecidable";
  else if (!failed && before !== undefined) fits = fits && (found === before ? outcome !== "undecidable" : outcome === "contract");
  if (!fits) yield `was decided on another outcome than the fetch at ${again.n} had`;
}

function* abortFaults({ stream, ver, data: d }, shown) {
  const decision = shown.named({ stream, ver: ver - 1 });
  if (d.requests !== 0) yield "says that nothing left, and that requests did";
  if (decision?.type !== "freshness.decided.v1" || decision.data.decision !== "abort-before-send") yield "no decision to abort stands before it";
  else {
    if (d.reason !== decision.data.reason) yield "its reason is not that of the decision before it";
    for (const [name, where] of [["old_hash", "card"], ["new_hash", "refetch"]]) {
      const fetch = shown.named(decision.data[where]);
      if (fetch && d[name] !== fetch.data.contract_hash) yield `its ${name} is not that of the fetch at ${fetch.n}`;
    }
  }
}

const succeeded = (status) => status >= 200 && status < 300;

const BESIDE = {
  *"ledger.opened.v1"({ log, stream, ver, data: d }, shown) {
    if (d.origin !== log || ver !== 0) yield "does not open the log that it stands in";
    const added = d.keys.map((_, at) => shown.named({ stream, ver: ver + at + 1 })), told = added.map((one) => (one?.type === "key.added.v1" ? one.data.vkey : ""));
    if (added.every(Boolean) && [...d.keys].sort().join() !== told.sort().join()) yield "its keys are not those that the events behind it add";
  },
  *"card.fetched.v1"(record, shown) {
    const { data: d } = record;
    if (has(d, "not_modified") !== (d.status === 304) || !(d.status === 304 || succeeded(d.status))) yield "its status does not go with what it brought";
    yield* cardFaults(record, shown.named(d.not_modified), ["form", "seed0", "interfaces"].filter((name) => has(d, name)));
  },
  *"card.fetch_failed.v1"({ data: d }) {
    if (d.outcome === "status" && (!has(d, "status") || succeeded(d.status))) yield "failed by a status that is no failure";
  },
  *"contract.accepted.v1"(record, shown) {
    const fetch = shown.named(record.data.fetch);
    yield* cardFaults(record, fetch, ["form"]);
    if (fetch && (fetch.type !== "card.fetched.v1" || record.data.new_hash !== fetch.data.contract_hash)) yield `takes on another contract than event ${fetch.n} brought`;
  },
  "freshness.decided.v1": refetchFaults,
  *"contract.captured.v1"(record, shown, beside) {
    const fetch = shown.named(record.data.fetch);
    yield* pinFaults(record);
    yield* frozenFaults(record, beside);
    yield* cardFaults(record, fetch, fetch?.type === "card.fetched.v1" ? ["form", "seed0"] : ["form"]);
  },
  "send.aborted.v1": abortFaults,
  "message.recorded.v1": (record, shown) => answerFaults(record, shown.named(record.data.answers)),
  *"task.bound.v1"(record, shown, { ids }) {
    const asked = shown.named(record.data.answers);
    if (!asked) return;
    const given = ids.get(`${asked.n} ${idsOf(record)}`) < record.n;
    if (!given || asked.type !== "message.recorded.v1" || asked.stream !== record.stream) yield `binds other ids than what answered event ${asked.n} gave`;
  },
  *"task.adopted.v1"(record, shown, { following }) {
    const said = following.get(record.n);
    if (!said || idsOf(said) !== idsOf(record)) yield "adopts other ids than the message behind it names";
  },
  *"finding.acknowledged.v1"({ stream, data: d }, shown) {
    const finding = shown.named(d.violation);
    if (finding && (finding.type !== "violation.detected.v1" || finding.stream !== stream)) yield `acknowledges event ${finding.n}, which is no finding of its stream`;
  },
  *"content.erased.v1"({ stream, ver, data: d }) {
    if (d.records.some((ref) => ref.stream !== stream || ref.ver >= ver)) yield "lists events that are not before it in its stream";
  },
};
BESIDE["contract.reconstructed.v1"] = BESIDE["contract.captured.v1"];

/** Return what events say otherwise than those that they stand beside. */
function besideFaults(shown) {
  const faults = [], beside = besides(shown);
  for (const record of shown.records.values()) {
    const { n, type, stream } = record, wrong = misplaced(stream, type);
    const found = [...(wrong ? [wrong] : []), ...peerFaults(record, beside), ...(has(BESIDE, type) ? BESIDE[type](record, shown, beside) : [])];
    faults.push(...found.map((what) => `${recordFile(n)}: ${what}`));
  }
  return faults;
}
