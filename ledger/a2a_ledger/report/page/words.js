// One event in a few words, for people.

const SHORT = (hash) => (typeof hash === "string" ? `${hash.slice(0, 15)}…` : "none");

const REASONS = {
  "out-of-scope": "both ends run in one process", manifest: "a signed manifest pins the card for now", frozen: "the task is under way: a card fetched now decides nothing",
  "no-card": "no card was at hand", "sibling-submitted": "another task was sent a moment ago and is not yet seen at work", expired: "the card was too old to use at all",
  contradicted: "this peer left a contract since the card was fetched", "version-skew": "the card's interface is of a version that the client does not speak", "version-not-stated": "the card states no version",
  "no-validator": "the server gives nothing to ask again by", flapping: "the contract went back and forth within a short time", "contract-limit": "the card was older than the limit for contracts", hint: "something hinted at a newer card",
  "capability-stale": "only what the card says of skills could be stale", fresh: "the card was fresh enough", "not-modified": "the server said that nothing changed", "contract-equal": "the new card has the same contract",
  "contract-changed": "the new card has another contract", undecidable: "the new card can be read in two ways", "refetch-failed": "asking again brought nothing",
};

/** Return {kind, words: nodes, tone, lines: further nodes}. */
function told(record) {
  const { data: d, type } = record;
  const teller = has(TELLERS, type) ? TELLERS[type] : null;
  const line = teller ? teller(d, record) : { kind: type, words: [teller === null && !has(TABLES.events, type) ? "an event that this page does not know; kept and checked" : ""] };
  if (record.how === "import") line.words = [...line.words, has(d, "claimed_at") ? " — imported, said to be of " : " — imported", has(d, "claimed_at") ? data(d.claimed_at) : ""];
  return { tone: "", lines: [], ...line };
}

/** What ended an exchange, where who waits for the answer did it himself: kinds of failure. */
const OURS = { timeout: "its own time-out", cancelled: "cancelled here", "closed-by-caller": "nobody here read on" };

function streamEnd(d, ours) {
  if (!has(d, "error_kind")) return "end of the stream";
  const after = has(d, "sequence") ? ` after ${d.sequence} ${d.sequence === 1 ? "event" : "events"}` : "";
  if (ours) return `ended the stream${after}: ${ours}`;
  return d.error_kind === "closed-by-caller" ? `the client left the stream${after}` : data(`the stream broke off${after}: ${d.error_kind}`);
}

function toldMessage(d, record) {
  const out = d.direction === "out", server = d.side === "server";
  const ours = !out && ["error", "stream-end"].includes(d.leg) && has(OURS, d.error_kind || "") ? OURS[d.error_kind] : "";
  const kind = ours ? "this side" : d.leg === "push" ? (out ? "push sent" : "push received") : out ? "sent" : "received";
  const words = [];
  const add = (...nodes) => { if (words.length) words.push(" · "); words.push(...nodes); };
  if (d.leg === "request") add(data(d.method || d.method_spelled || d.http_method || "request"));
  if (d.leg === "error" && ours) add(`gave up before an answer came: ${ours}`);
  else if (d.leg === "error") add(d.tls_alert ? data(`no HTTP answer: TLS alert ${d.tls_alert}`) : data(`no answer: ${d.error_kind || "unknown"}`));
  if (d.leg === "stream-end") add(streamEnd(d, ours));
  if (d.leg === "stream-event") add(`stream event${has(d, "sequence") ? ` ${d.sequence}` : ""}`);
  if (d.state_read || d.state) add("state ", make("strong", {}, data(d.state_read || d.state)));
  if (d.task_id) add("task ", data(d.task_id, 80));
  if (d.message_id && d.leg === "request") add("message ", data(d.message_id, 80));
  if (d.status >= 400) add(`HTTP ${d.status}`);
  if (has(d, "error_code")) add(`error ${d.error_code}`);
  if (d.leg === "request") add(d.credential?.length ? data(`with ${d.credential.map((one) => one.scheme).join(", ")} credential`) : "no credential seen");
  if (d.pin_seen) add(d.pin ? "pin echoed" : "no pin in it");
  if (d.flags?.length) add(data(d.flags.join(", ")));
  const trouble = d.leg === "error" || d.status >= 400 || has(d, "error_code");
  return { kind: server ? `${kind} (as the agent)` : kind, words: words.length ? words : [data(d.leg)], tone: d.direction === "out" ? "out" : trouble ? "open" : "" };
}

const schemesOf = (contract) => (isObject(contract?.schemes) ? Object.keys(contract.schemes).sort() : []);

function toldFrozen(d, record) {
  const contract = contractIn(record), schemes = schemesOf(contract), at = isObject(d.interface) ? d.interface : {};
  const kind = record.type === "contract.captured.v1" ? "contract frozen" : "contract rebuilt from imported material";
  return { kind, tone: "out", words: [code(SHORT(d.contract_hash)), " ", data(`${at.binding} ${at.version || "version not stated"} ${at.url}`), " · ", schemes.length ? data(`offers ${schemes.join(", ")}`) : "asks for no credential"] };
}

/** The frozen contract in its normal form, from its blob; null where it is not all here. */
function contractIn(record) {
  try {
    return record?.parts.contract && isWhole(record, "contract") ? parseCanonical(contentOf(record, "contract"), "contract") : null;
  } catch {
    return null;
  }
}

const TELLERS = {
  "message.recorded.v1": toldMessage,
  "contract.captured.v1": toldFrozen,
  "contract.reconstructed.v1": toldFrozen,
  "card.fetched.v1": (d) => ({
    kind: "card fetched",
    words: [`${d.status}${d.status === 304 ? ", the peer says unchanged" : ""}, contract `, d.contract_hash ? code(SHORT(d.contract_hash)) : "none can be captured", data(` · ${d.purpose}, ${d.source}, as ${d.caller}`), d.flags?.length ? data(` · ${d.flags.join(", ")}`) : ""],
  }),
  "card.fetch_failed.v1": (d) => ({ kind: "card fetch failed", tone: "open", words: [data(`${d.outcome}${has(d, "status") ? ` ${d.status}` : ""}${d.tls_alert ? `, TLS alert ${d.tls_alert}` : ""} · ${d.purpose}`)] }),
  "card.served.v1": (d) => ({ kind: "card served", words: [data(d.url), " contract ", code(SHORT(d.contract_hash))] }),
  "card.manifest.v1": (d) => ({ kind: "card manifest", words: [data(`${d.status}, floor until ${d.floor_until}`)] }),
  "card_key.added.v1": (d) => ({ kind: "card key added", words: [data(`${d.kid}, by ${d.who}`)] }),
  "card_key.retired.v1": (d) => ({ kind: "card key retired", words: [data(`${d.kid}, by ${d.who}: ${d.reason}`)] }),
  "contract.accepted.v1": (d) => ({ kind: "contract accepted", words: [code(SHORT(d.old_hash)), " to ", code(SHORT(d.new_hash)), data(` · authorization ${d.authorization}, by ${d.who} (${d.acceptance})`)] }),
  "freshness.decided.v1": (d) => ({
    kind: "decided", tone: d.decision === "abort-before-send" ? "open" : "",
    words: [make("strong", {}, data(d.decision)), ", since ", data(has(REASONS, d.reason) ? REASONS[d.reason] : d.reason), " (", code(d.reason), ") · at stake: ", data(d.at_stake)],
  }),
  "send.aborted.v1": (d) => ({ kind: "not sent", tone: "open", words: [data(`nothing left: ${d.reason}`), d.new_hash ? [", contract ", code(SHORT(d.old_hash)), " to ", code(SHORT(d.new_hash))] : "", d.authorization ? data(` · authorization ${d.authorization}`) : ""].flat() }),
  "task.bound.v1": (d) => ({ kind: "bound", words: ["the peer calls the task ", data(d.task_id), d.context_id ? data(` in context ${d.context_id}`) : ""] }),
  "task.adopted.v1": (d) => ({ kind: "adopted", words: [data(d.task_id), " was first seen when it had begun: recorded, not judged"] }),
  "task.snapshot.v1": (d) => ({ kind: "snapshot", words: [data(`a task store held ${d.task_id} as ${d.state}: its exporter says so`)] }),
  "violation.detected.v1": (d) => ({ kind: "finding", tone: "bad", words: [make("strong", {}, data(d.rule)), data(`, about ${PARTY[d.about] || d.about}, ${d.certainty}; completed by `), place(d.trigger_index)] }),
  "finding.acknowledged.v1": (d) => ({ kind: "acknowledged", words: [data(`by ${d.who}: ${d.why}`)] }),
  "content.erased.v1": (d) => ({ kind: "content erased", tone: "open", words: [data(`${d.scope}, asked for by ${d.requested_by}: ${d.reason}`)] }),
  "ledger.opened.v1": (d) => ({ kind: "log opened", words: [data(`${d.origin} by ${d.software}`)] }),
  "key.added.v1": (d) => ({ kind: "key added", words: [data(`${d.role} key ${d.key_id}`), has(d, "old") ? ", signed over by the key before it" : ""] }),
  "key.retired.v1": (d) => ({ kind: "key retired", words: [data(`${d.role} key ${d.key_id}`)] }),
  "key.revoked.v1": (d) => ({ kind: "key revoked", tone: "open", words: [data(`${d.role} key ${d.key_id}, not to be trusted behind size ${d.size}`)] }),
  "checkpoint.anchored.v1": (d) => ({ kind: "checkpoint anchored", words: [data(`size ${d.size}, by ${d.holder} (${d.kind})`)] }),
};

/** What a message says in words: the text parts of its body; "" if there are none, or if it is no JSON. */
function saidIn(record) {
  if (record.type !== "message.recorded.v1" || !record.parts.body || record.blobs.body.size > MIB) return "";
  const found = [];
  const walk = (value, key) => {
    if (value === null || typeof value !== "object" || found.length > 20 || key === "history") return;
    for (const [name, member] of Object.entries(value)) {
      if (name === "text" && typeof member === "string") found.push(member);
      else walk(member, name);
    }
  };
  try {
    walk(parseAny(textOf(contentOf(record, "body"), "body")), "");
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
  }
  return found.join(" ");
}

const PARTY = { peer: "the peer", client: "the client (the recorder's own side)", either: "either side" };
const place = (n) => make("a", { href: `#event-${Number(n)}` }, `#${Number(n)}`);

/** Who left the contract and since when: by what is certain first; null if no finding is shown. */
function whoLeft(shown) {
  const findings = [...shown.records.values()].filter(({ type }) => type === "violation.detected.v1");
  if (!findings.length) return null;
  const rank = ({ data: d }) => [["certain", "claimed", "suspected"].indexOf(d.certainty) + 1 || 9, d.rule_class === "contract" ? 0 : 1, d.trigger_index];
  const first = [...findings].sort((a, b) => rank(a).map((one, at) => one - rank(b)[at]).find((one) => one !== 0) || 0)[0];
  const trigger = shown.records.get(first.data.trigger_index);
  return { first, trigger, count: findings.length, party: PARTY[first.data.about] || String(first.data.about) };
}
