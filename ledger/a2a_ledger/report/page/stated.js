// What a bundle's own files repeat of the facts that it shows, held against these facts (docs/format.md 11.2).

const TASK = /^[0-9a-f]{40}$/, TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

function claimsFaults(claimed, shown, checkpoint, scope) {
  const name = "data/claims.json", { later_events: later, signed } = claimed;
  if (!isCount(later) || typeof signed !== "boolean") return [`${name}: later_events is a number from 0 on, and signed true or false`];
  const expected = {
    checkpoint: { root: hex(checkpoint.root), size: Number(checkpoint.size) }, claims: LETTERS,
    ends: endsOf(scope).map((stream) => ({ stream, ver: shown.end(stream) })), events: shown.records.size, form: formOf(scope), later_events: later, log: checkpoint.origin,
    not_claimed: notClaimed(scope), signed, withheld: [], ...scopeMembers(scope, shown),
  };
  const faults = [...new Set([...Object.keys(expected), ...Object.keys(claimed)])].sort()
    .filter((member) => member !== "withheld" && !(has(expected, member) && has(claimed, member) && equal(expected[member], claimed[member])))
    .map((member) => `${name}: its ${member} is not what the bundle shows`);
  return [...faults, ...strangers(scope, shown).map((fault) => `${name}: ${fault}`)];
}

/** Faults of the keys for comparison, expected.jsonl, custody.json and bag-info.txt. */
function repeatedFaults(bundle, shown, checkpoint, scope, at) {
  const faults = [];
  for (const check of [keyFileFaults, expectedFaults, custodyFaults, infoFaults]) {
    try {
      faults.push(...check(bundle, shown, checkpoint, scope, at));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      faults.push(problem.message);
    }
  }
  return faults;
}

function keyFileFaults(bundle, shown) {
  const expected = new Map();
  for (const { type, data } of shown.streams.get("ledger") || []) {
    if (type === "key.added.v1") expected.set(`data/keys/untrusted/${data.role}-${parseVkey(data.vkey).keyId}.vkey`, utf8(`${data.vkey}\n`));
  }
  const names = new Set([...expected.keys(), ...bundle.under("data/keys/untrusted/")]);
  return [...names].sort().filter((name) => !(expected.has(name) && bundle.files.has(name) && same(expected.get(name), bundle.read(name))))
    .map((name) => `${name}: not the key that the log's own events name there`);
}

function expectedFaults(bundle, shown) {
  const name = "data/replay/expected.jsonl";
  const lines = [...shown.records.values()].filter(({ type }) => type === "freshness.decided.v1" || type === "violation.detected.v1").map(({ n, type, data }) => {
    const line = { index: n, type };
    for (const member of ["decision", "reason", "rule", "about", "certainty"]) if (has(data, member)) line[member] = data[member];
    return `${canonical(line)}\n`;
  });
  return same(bundle.read(name), utf8(lines.join(""))) ? [] : [`${name}: not the outcome of the decisions and findings that are shown`];
}

function custodyFaults(bundle, shown, checkpoint, scope, at) {
  const name = "data/custody.json", custody = bundle.json(name);
  if (!exactly(custody, ["acquired_by", "clock", "custodian", "exported_at", "hand_overs"])) throw new Problem(`${name}: other members than custody has`);
  const texts = typeof custody.acquired_by === "string" && typeof custody.clock === "string";
  if (!texts || typeof custody.exported_at !== "string" || !TIME.test(custody.exported_at) || !equal(custody.hand_overs, [])) throw new Problem(`${name}: expected texts, a time of export, and no hand-overs`);
  if (custody.custodian !== checkpoint.origin || (at && custody.exported_at !== at)) throw new Problem(`${name}: names another custodian, or another time of export, than the bundle`);
  return [];
}

function infoFaults(bundle, shown, checkpoint, scope) {
  const name = "bag-info.txt", lines = bundle.text(name).split("\n");
  if (lines.pop() !== "") return [`${name}: the last line does not end in a line feed`];
  const payload = [...bundle.zipped].filter(([one]) => one.startsWith("data/"));
  const expected = [
    `BagIt-Profile-Identifier: ${formOf(scope)}`, `External-Identifier: ${checkpoint.origin}#${identifierOf(scope)}`, `Log-Size: ${checkpoint.size}`,
    `Payload-Oxum: ${payload.reduce((sum, [, octets]) => sum + octets.length, 0)}.${payload.length}`,
  ];
  const dates = lines.filter((line) => /^Bagging-Date: \d{4}-\d\d-\d\d$/.test(line));
  return [
    ...expected.filter((line) => lines.filter((one) => one === line).length !== 1).map((line) => `${name}: expected the line ${line} once`),
    ...(dates.length === 1 ? [] : [`${name}: expected one Bagging-Date, found ${dates.length}`]),
    ...lines.filter((line) => !expected.includes(line) && !dates.includes(line)).map((line) => `${name}: ${line.slice(0, 80)} has no place there`),
  ];
}

/** What a record says of its own octets, where that is one hash away; other content is left to a verifier that judges again. */
function contentFaults(shown) {
  const faults = [];
  const hashed = (octets) => `sha256:${hex(sha256(octets))}`;
  for (const record of shown.records.values()) {
    const { n, type, data } = record;
    const fault = (what) => faults.push(`${recordFile(n)}: ${what}`);
    if ((type === "card.fetched.v1" || type === "card.served.v1") && !has(data, "not_modified") && record.parts.body && isWhole(record, "body") && data.raw_hash !== hashed(contentOf(record, "body"))) fault("raw_hash is not that of the card that was served");
    if (type !== "contract.captured.v1" && type !== "contract.reconstructed.v1") continue;
    for (const role of ["contract", "terms"]) {
      if (record.parts[role] && isWhole(record, role) && data[`${role}_hash`] !== hashed(contentOf(record, role))) fault(`${role}_hash is not that of its blob ${role}`);
    }
    const fetch = shown.named(data.fetch);
    if (!fetch) continue;
    if (fetch.type !== "card.fetched.v1" && fetch.type !== "card.served.v1") fault(`fetch names event ${fetch.n}, which is no card fetch`);
    for (const name of ["raw_hash", "document_hash", "contract_hash"]) if (has(data, name) && data[name] !== fetch.data[name]) fault(`${name} is not that of the fetch at ${fetch.n}`);
  }
  return faults;
}

const LEGS = ["request", "response", "stream-event", "stream-end", "push", "error"];

/** Say which events are of a kind that this page does not know; on what the log says of its keys no judgement rests. */
function unknownKinds(shown) {
  const known = ({ type, stream, data }) => (type === "message.recorded.v1" ? LEGS.includes(data.leg) && ["in", "out"].includes(data.direction) : has(TABLES.events, type) || stream === "ledger");
  return [...shown.records.values()].filter((record) => !known(record)).map(({ n }) => `${recordFile(n)}: an event, or a message, of a kind that this page does not know`);
}
