// What the log's own keys signed: key events, the export, each finding (docs/format.md 6.3 and 12, steps 6, 9 and 11).

const HANDOVER = utf8("a2a-ledger/key/v1\0");

class Keys {
  constructor() {
    this.terms = []; // {role, key, added, retired, revoked}
    this.follows = new Map(); // vkey of a new key -> the old key; both signed
    this.faults = [];
  }

  /** Learn from the shown events of the stream `ledger` which key speaks for which role at which sizes. */
  static async of(records, origin) {
    const keys = new Keys();
    for (const record of [...records].sort((a, b) => a.n - b.n)) {
      if (record.stream !== "ledger" || !["key.added.v1", "key.retired.v1", "key.revoked.v1"].includes(record.type)) continue;
      let fault;
      try {
        fault = await keys.take(record, origin);
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        fault = problem.message;
      }
      if (fault) keys.faults.push(`${recordFile(record.n)}: no usable ${record.type}: ${fault}`);
    }
    return keys;
  }

  async take({ type, data, n }, origin) {
    const key = parseVkey(data.vkey), term = this.term(key);
    if (type === "key.added.v1") return this.added(data, n, origin, key);
    if (!term) return "the key was never added";
    const fault = this.ended(term, type, data, n);
    return data.role !== term.role || data.key_id !== key.keyId ? "names the key otherwise than it was added" : fault;
  }

  async added(data, n, origin, key) {
    if (!ROLES.includes(data.role)) return "no role";
    if (this.terms.some((term) => same(term.key.publicKey, key.publicKey))) return "adds a key that is there already";
    if (data.public_key !== hex(key.publicKey) || data.key_id !== key.keyId) return "adds two keys in one: public key, key id and vkey differ";
    if (["log", "statement", "export"].includes(data.role) && key.name !== origin) return `adds a ${data.role} key under another name than the log's`;
    let old = null;
    if (has(data, "old")) {
      old = parseVkey(data.old);
      const message = joined(HANDOVER, utf8(canonical({ log: origin, new: key.vkey, old: data.old, role: data.role })));
      const good = (await signedBy(old, unhex(data.signature_old), message)) && (await signedBy(key, unhex(data.signature_new), message));
      if (!good) return "a hand-over that not both keys signed";
    }
    this.terms.push({ role: data.role, key, added: n, retired: null, revoked: null, revokedBy: null });
    if (old !== null && canVerify) this.follows.set(key.vkey, old);
    return "";
  }

  ended(term, type, data, n) {
    const before = { ...term };
    if (type === "key.retired.v1") {
      term.retired = before.retired === null ? n : Math.min(before.retired, n);
      return before.retired === null ? "" : "the key is retired already";
    }
    if (!isCount(data.size)) return "expected a size";
    term.revoked = before.revoked === null ? data.size : Math.min(before.revoked, data.size);
    term.revokedBy = before.revokedBy ?? n;
    return before.revoked !== null && data.size >= before.revoked ? "the key is revoked already" : "";
  }

  /** By the vkey of each key the one that handed over to it while that spoke for its role itself. */
  handedOver() {
    const terms = new Map(this.terms.map((term) => [term.key.vkey, term]));
    const spoke = ({ key, added }) => this.follows.has(key.vkey) && (!terms.has(this.follows.get(key.vkey).vkey) || covers(terms.get(this.follows.get(key.vkey).vkey), added + 1));
    return new Map(this.terms.filter(spoke).map(({ key }) => [key.vkey, this.follows.get(key.vkey)]));
  }

  term(key) { return this.terms.find((term) => term.key.vkey === key.vkey); }
  speaking(role, size) { return this.terms.filter((term) => term.role === role && covers(term, size)).map((term) => term.key); }

  /** The keys that spoke there until a revocation that was logged later. */
  lapsed(role, n) {
    const lapsed = (term) => term.role === role && n < (term.revokedBy ?? 0) && !covers(term, n) && covers({ ...term, revoked: null }, n);
    return this.terms.filter(lapsed).map((term) => term.key);
  }
}

const covers = ({ added, retired, revoked }, size) => added < size && (retired === null || size <= retired) && (revoked === null || size <= revoked);

const PAYLOAD_TYPE = "application/vnd.in-toto+json";
const BASE = "https://w3id.org/a2a-ledger/";

/** Open a DSSE envelope: {payload, signers}. Only octets that a known key signed are ever handed on. */
async function openEnvelope(octets, keys, what) {
  const envelope = parseCanonical(octets, what); // an envelope of ours has one spelling
  const { payload, payloadType, signatures } = isObject(envelope) && !(envelope instanceof NumberToken) ? envelope : {};
  if (typeof payload !== "string" || payloadType !== PAYLOAD_TYPE || !Array.isArray(signatures) || !signatures.length || signatures.length > 100) {
    throw new Problem("no DSSE envelope around an in-toto statement");
  }
  const content = eitherBase64(payload);
  const message = joined(utf8(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${content.length} `), content);
  const found = signatures.map((entry) => {
    if (!isObject(entry) || typeof entry.sig !== "string") throw new Problem("each signature of an envelope has the text `sig`");
    return eitherBase64(entry.sig);
  });
  const signers = [];
  for (const key of keys) for (const one of found) if (!signers.includes(key) && (await signedBy(key, one, message))) signers.push(key);
  if (!signers.length) throw new Problem("signed by no key of the log that speaks there");
  return { payload: content, signers };
}

const eitherBase64 = (text) => unbase64(/[+/]/.test(text) ? text : text.replaceAll("-", "+").replaceAll("_", "/"), "an envelope");

function parseStatement(payload) {
  const value = parseCanonical(payload, "the statement");
  const good = exactly(value, ["_type", "predicate", "predicateType", "subject"]) && value._type === "https://in-toto.io/Statement/v1" && isObject(value.predicate)
    && typeof value.predicateType === "string" && Array.isArray(value.subject) && value.subject.length
    && value.subject.every((one) => isObject(one) && typeof one.name === "string" && isObject(one.digest) && typeof one.digest.sha256 === "string");
  if (!good) throw new Problem("no in-toto statement with SHA-256 subjects");
  return value;
}

/** The exporter's raw signature over the tag manifest. */
async function exportSignatureFaults(bundle, keys, size, promised) {
  const name = "tagmanifest-sha256.txt.sig", there = bundle.files.has(name);
  if (there !== promised) return [`${name} is ${there ? "there" : "missing"}, and claims.json says otherwise`];
  if (!there) return [];
  for (const key of keys.speaking("export", size)) if (await signedBy(key, bundle.read(name), bundle.read("tagmanifest-sha256.txt"))) return [];
  return [`${name}: signed by no export key of the log`];
}

/** The exporter's statement: {ends: Map or null, at, faults}. */
async function exportStatement(bundle, keys, leaves, checkpoint, claimed, scope) {
  const name = "data/export.dsse.json", said = { ends: null, at: "", faults: [] };
  const promised = claimed.signed === true;
  if (bundle.files.has(name) !== promised) said.faults.push(`${name} is ${promised ? "missing" : "there"}, and claims.json says otherwise`);
  if (!bundle.files.has(name)) return said;
  try {
    const { payload, signers } = await openEnvelope(bundle.read(name), keys.speaking("export", checkpoint.size), name);
    const { predicate, predicateType, subject } = parseStatement(payload);
    if (predicateType !== `${BASE}export/v1`) throw new Problem("another predicate type");
    const lines = concat([...leaves.values()].flatMap((leaf) => [leaf.raw, Uint8Array.of(10)]));
    if (subject.length !== 1 || subject[0].name !== "data/log/events.jsonl" || subject[0].digest.sha256 !== hex(sha256(lines))) throw new Problem("its subject is not the leaves that the bundle shows");
    if (!exactly(predicate, [...saidTwice(scope), "at", "exporter", "tool"])) throw new Problem("other members than an export has");
    for (const member of saidTwice(scope)) if (!has(claimed, member) || !equal(predicate[member], claimed[member])) throw new Problem(`says another ${member} than claims.json`);
    if (typeof predicate.at !== "string" || typeof predicate.tool !== "string" || !signers.some((key) => key.vkey === predicate.exporter)) throw new Problem("`exporter` is the vkey that signed");
    const ends = new Map();
    for (const end of Array.isArray(predicate.ends) ? predicate.ends : [null]) {
      if (!exactly(end, ["stream", "ver"]) || typeof end.stream !== "string" || !Number.isSafeInteger(end.ver) || end.ver < -1 || ends.has(end.stream)) throw new Problem("`ends` has another form");
      ends.set(end.stream, end.ver);
    }
    if (!equal([...ends.keys()], endsOf(scope))) throw new Problem("its `ends` are of other streams");
    Object.assign(said, { ends, at: predicate.at });
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    said.faults.push(problem.message.startsWith(name) ? problem.message : `${name}: ${problem.message}`);
  }
  return said;
}

/** Check place and statement of each finding: {faults, left, checks: Map of n to {good, text}}. */
async function checkFindings(bundle, shown, keys) {
  const faults = [], left = [], checks = new Map(), expected = new Set();
  for (const record of shown.records.values()) {
    if (record.type !== "violation.detected.v1") continue;
    const name = statementFile(record.n);
    expected.add(name);
    if ((record.parts.statement || []).some((part) => !part.content)) {
      left.push(`the statement of finding ${record.n} is left out`);
      checks.set(record.n, { good: null, text: "left out: nothing to check" });
      continue;
    }
    try {
      checkPlace(record);
      const lapsed = keys.lapsed("statement", record.n);
      const { payload, signers } = await openEnvelope(bundle.read(name), [...keys.speaking("statement", record.n), ...lapsed], name);
      const doubted = signers.every((key) => lapsed.includes(key));
      const content = contentOf(record, "statement");
      if (content === null || !same(content, bundle.read(name)) || hex(sha256(payload)) !== record.data.statement_sha256) throw new Problem(`not the statement that ${recordFile(record.n)} holds`);
      const statement = parseStatement(payload);
      checkPredicate(statement, record, shown);
      left.push(...checkSubjects(statement, record, shown));
      if (doubted) left.push(`finding ${record.n} is signed by a key that was revoked later, for a size before it: others could sign it too`);
      checks.set(record.n, doubted ? { good: null, text: "signed by a key that was revoked later: others could sign it too", payload } : canVerify ? { good: true, text: "signed; verified in this browser", signer: signers[0], payload } : { good: null, text: "this browser cannot check signatures", payload });
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      faults.push(problem.message.startsWith(name) ? problem.message : `${name}: ${problem.message}`);
      checks.set(record.n, { good: false, text: problem.message });
    }
  }
  for (const name of bundle.under("data/statements/")) if (!expected.has(name)) faults.push(`${name}: no finding of the bundle has it`);
  return { faults, left, checks };
}

function checkPlace({ n, data, stream }) {
  if (has(TABLES.rule_sets, data.rule_set)) {
    if (!TABLES.rule_sets[data.rule_set].includes(data.rule)) throw new Problem(`${recordFile(n)}: its rule set has no such rule`);
    const rule = TABLES.rules[data.rule];
    if (data.rule_class !== rule.rule_class || !equal(data.not_established, rule.not_established)) throw new Problem(`${recordFile(n)}: not the class and the open ends of its rule`);
  }
  const ofPeer = data.rule_class === "card" || data.rule === "weaker-authorization";
  if (stream !== (ofPeer ? `findings:peer:${data.peer}` : `findings:${data.task}`) || (ofPeer && has(data, "task"))) throw new Problem(`${recordFile(n)}: recorded where its rule does not belong`);
}

function checkPredicate({ predicate, predicateType }, record, shown) {
  const { data, n } = record, at = data.trigger_index, trigger = shown.records.get(at);
  if (predicateType !== `${BASE}violation/v1`) throw new Problem("another predicate type");
  const framed = has(data, "frozen_hash");
  if (framed !== has(data, "frozen_form")) throw new Problem(`${recordFile(n)}: a hash stands with its form`);
  if (!trigger || !equal(refOf(trigger), data.trigger) || at >= n) throw new Problem(`its trigger, event ${at}, is not an event that is shown`);
  const expected = { trigger: trigger.c, as_of: at + 1, frozen: framed ? { form: data.frozen_form, hash: data.frozen_hash } : null };
  for (const name of ["about", "basis", "certainty", "not_established", "observed", "profile_hash", "rule", "rule_set", "subject"]) expected[name] = data[name];
  for (const name of new Set([...Object.keys(expected), ...Object.keys(predicate)])) {
    if (!has(predicate, name) || !has(expected, name) || !equal(predicate[name], expected[name])) throw new Problem(`says another ${name} than ${recordFile(n)}`);
  }
}

/** The peers, a finding about whom rests on events of other tasks, which are not shown; sorted. */
function peersOfFindingsElsewhere(shown) {
  const found = [...shown.records.values()].filter(({ type, stream, data }) => type === "violation.detected.v1" && stream.startsWith("findings:peer:") && data.evidence_index.some((n) => !shown.leaves.has(n)));
  return [...new Set(found.map(({ data }) => data.peer))].sort();
}

const refOf = ({ c, stream, ver }) => ({ c, stream, ver });

function checkSubjects({ subject }, record, shown) {
  const { data, n, log, stream } = record, indexes = data.evidence_index;
  if (subject.length !== indexes.length || subject.length !== data.evidence.length) throw new Problem("has other subjects than its record names events");
  if (indexes.some((one, at) => at && one <= indexes[at - 1]) || !indexes.includes(data.trigger_index)) throw new Problem(`${recordFile(n)}: its evidence is in order of the log, the trigger among it`);
  const left = [];
  subject.forEach(({ name, digest: { sha256: stated } }, at) => {
    const index = indexes[at], leaf = shown.leaves.get(index), there = shown.records.get(index);
    if (!leaf) {
      if (!stream.startsWith("findings:peer:") || name !== `${log}#${index}` || index >= n) throw new Problem(`speaks about leaf ${index}, which is not shown`);
      left.push(`finding ${n} rests on event ${index}, which is not shown`);
    } else if (name !== `${log}#${index}` || stated !== hex(sha256(leaf.raw))) throw new Problem(`speaks about another leaf ${index} than is shown`);
    else if (there && !equal(refOf(there), data.evidence[at])) throw new Problem(`${recordFile(n)}: refers to another event ${index} than is shown`);
  });
  return left;
}
