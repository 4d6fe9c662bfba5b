// The steps of docs/format.md 12: one bundle and the reader's trust in, one answer a claim out.

const LETTERS = ["I", "L", "P", "A", "W", "T", "S", "C1", "C2", "C3", "R", "X"];
const REQUIRED = ["I", "L", "P", "C2", "R"];
const NO_SIGNATURES = "this browser cannot check Ed25519 signatures";

/** Return {verdict, sides, claims, about, …}; never throws for what a bundle holds. `earlier`: signed heads, as octets. */
async function verify(octets, policy, earlier = []) {
  await tryBrowser();
  try {
    const bundle = new Bundle(await readArchive(octets));
    return await new Examination(bundle, policy, earlier).report();
  } catch (problem) {
    if (problem instanceof ReaderProblem) throw problem;
    const what = problem instanceof Problem ? problem.message : `it could not be judged, which is a defect of this page: ${problem}`;
    return unreadable(what);
  }
}

/** The report on what is no bundle at all. */
function unreadable(what) {
  const claims = LETTERS.map((claim) => (claim === "I" ? { claim, status: "INVALID", detail: what } : { claim, status: "NOT PROVEN", detail: "nothing can be read", settle: "an intact bundle" }));
  return { verdict: "invalid", sides: "unilateral", claims, size: null, anchored: 0, about: "not a bundle", bundle: null };
}

/** Up to where the log is signed, and up to where somebody else vouches for it; in the words of every verifier. */
function reach({ size, anchored, bundle }) {
  if (size === null) return "No checkpoint can be read";
  const unread = bundle.under("data/time/").length ? "; time tokens are not read here" : "";
  return `Checkpoint ${size}, anchored ${anchored ? `up to ${anchored} by whom you trust` : "by nobody whom you trust"}${unread}`;
}

class ReaderProblem extends Error {}

function some(sentences) {
  return sentences.slice(0, 3).join("; ") + (sentences.length > 3 ? `; and ${sentences.length - 3} more` : "");
}

class Examination {
  constructor(bundle, policy, earlier) {
    Object.assign(this, { bundle, policy, earlier, claims: new Map(), size: null, anchored: 0, shown: null, keys: null, checks: new Map(), about: "" });
  }

  say(claim, status, detail, settle = "") { this.claims.set(claim, { claim, status, detail, settle }); }

  judge(claim, faults, good) { this.say(claim, faults.length ? "INVALID" : "VALID", faults.length ? some(faults) : good); }

  async report() {
    const { bundle } = this;
    let faults = oversize(bundle);
    if (!faults.length) {
      faults = [...(await manifestFaults(bundle)), ...foreign(bundle)];
      let checkpoint = null, claimed = null;
      try {
        checkpoint = parseCheckpoint(parseNote(bundle.read("data/log/checkpoint")).text);
        claimed = bundle.json("data/claims.json");
        if (!isObject(claimed)) throw new Problem("data/claims.json: expected an object");
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        if (!faults.length) faults = [problem.message];
        claimed = null;
      }
      if (claimed !== null) this.size = checkpoint.size;
      if (claimed !== null) await this.judgeLog(checkpoint, claimed, faults);
    }
    const unsigned = bundle.files.has("tagmanifest-sha256.txt.sig") ? "" : "; nobody signed for them, so anybody may have left parts out";
    this.judge("I", faults, `${bundle.zipped.size} files are what the manifests say${unsigned}`);
    if (!faults.length && !canVerify && !unsigned) this.say("I", "NOT PROVEN", `the manifests hold; ${NO_SIGNATURES}`, "a newer browser");
    for (const letter of LETTERS) if (!this.claims.has(letter)) this.say(letter, "NOT PROVEN", "the checkpoint or the claims cannot be read", "an intact bundle");
    const claims = LETTERS.map((letter) => this.claims.get(letter));
    return { ...this, verdict: verdictOf(claims, this.policy !== null, this.earlier.length ? [...REQUIRED, "A"] : REQUIRED), sides: "unilateral", claims };
  }

  async judgeLog(checkpoint, claimed, faults) {
    const { bundle } = this;
    const [rows, leaves, leafFaults] = readLeaves(bundle, checkpoint.origin);
    const shown = (this.shown = await Shown.of(bundle, rows, leaves, checkpoint.origin));
    const keys = (this.keys = await Keys.of(shown.records.values(), checkpoint.origin));
    const head = (this.head = await this.judgeHead(checkpoint));
    leafFaults.push(...inclusionFaults(bundle, leaves, checkpoint));
    if (!leaves.size && !leafFaults.length) leafFaults.push("data/log/events.jsonl shows no event");
    this.judge("P", leafFaults, `${leaves.size} events are under checkpoint ${checkpoint.size}`);
    let scope = scopeOf(claimed, bundle.packed);
    if (scope === null) {
      faults.push("data/claims.json: does not say what the bundle is about");
      scope = { packed: bundle.packed, kind: "task", value: String(claimed.task), tasks: [] };
    }
    const said = await exportStatement(bundle, keys, leaves, checkpoint, claimed, scope);
    Object.assign(this, { claimed, checkpoint, scope });
    faults.push(...(await exportSignatureFaults(bundle, keys, checkpoint.size, claimed.signed === true)), ...said.faults, ...keys.faults);
    faults.push(...claimsFaults(claimed, shown, checkpoint, scope), ...repeatedFaults(bundle, shown, checkpoint, scope, said.at));
    this.judgeWitnesses(head);
    this.judgeTime(head);
    await this.judgeEarlier(head);
    this.judge("C1", shown.faults, `${shown.records.size} records and their blobs are what their leaves commit to`);
    this.judgeAllLeaves(shown, leaves, checkpoint);
    this.judgeStreams(shown, said, head);
    this.judgeGaps(shown, claimed);
    await this.judgeFindings(shown, keys);
    this.judgePeer(shown, checkpoint);
  }

  /** Claim L: trust is the reader's; keys from inside only show whether the bundle fits together. */
  async judgeHead(checkpoint) {
    const { bundle, policy, keys } = this;
    const raw = bundle.read("data/log/checkpoint"), what = `checkpoint ${checkpoint.size} of ${checkpoint.origin}`;
    const head = { checkpoint, trusted: false, logs: [], cosigners: [], quorum: false, quorumTime: null };
    if (policy) {
      head.logs = trustedFor(policy, "log").filter((key) => key.name === checkpoint.origin);
      const before = keys.handedOver();
      head.logs.push(...keys.terms.filter((term) => followsTrusted(term, before, head.logs)).map((term) => term.key));
    }
    if (!canVerify) {
      this.say("L", "NOT PROVEN", `${what}: ${NO_SIGNATURES}`, "a newer browser");
      return head;
    }
    if (head.logs.length) {
      try {
        const opened = await openCheckpoint(raw, [...head.logs, ...trustedFor(policy, "witness")]);
        const ours = opened.signers.map(({ key }) => key).filter((key) => head.logs.some((one) => one.vkey === key.vkey));
        const speaks = (key) => !keys.term(key) || (keys.term(key).role === "log" && covers(keys.term(key), checkpoint.size));
        const signer = ours.find(speaks) || ours[0], term = keys.term(signer);
        if (term && term.role !== "log") this.say("L", "INVALID", `${what} is signed by a key that the log names as its ${term.role} key`);
        else if (term && !covers(term, checkpoint.size)) this.say("L", "INVALID", `${what} is signed by ${keyName(signer)}, which does not speak for this size`);
        else this.say("L", "VALID", `${what} is signed by ${keyName(signer)}, a key that you trust`);
        head.trusted = this.claims.get("L").status === "VALID";
        head.cosigners = opened.signers.filter(({ key }) => key.kind === COSIGNATURE);
        head.quorum = quorumMet(policy, head.cosigners);
        head.quorumTime = quorumTime(policy, head.cosigners);
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        this.say("L", "INVALID", `${what}: ${problem.message}`);
      }
      return head;
    }
    try {
      const { signers } = await openCheckpoint(raw, claimedLogKeys(bundle, keys));
      const why = policy ? "you named no key of this log" : "you named no key";
      this.say("L", "NOT PROVEN", `${what} is signed by ${signers[0].key.vkey}, a key unknown to you; ${why}`, "get the log's key from its owner by another way, compare, and enter it above");
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      this.say("L", "INVALID", `${what}, by keys from inside the bundle: ${problem.message}`);
    }
    return head;
  }

  judgeWitnesses({ cosigners, quorum }) {
    if (!cosigners.length) return this.say("W", "NOT PROVEN", canVerify ? "no witness that you trust has signed the checkpoint" : NO_SIGNATURES, "a cosignature of a witness that you name");
    const names = cosigners.map(({ key, time }) => `${key.name} at ${spelledTime(time)}`).join(", ");
    if (this.policy.quorum === "none") return this.say("W", "NOT PROVEN", `cosigned by ${names}`, "a quorum line in your policy");
    if (!quorum) return this.say("W", "NOT PROVEN", `your quorum ${this.policy.quorum} is not met: cosigned by ${names}`, "the cosignatures that are missing");
    this.anchored = this.size;
    return this.say("W", "VALID", `cosigned by ${names}`);
  }

  /** Claim T: by the quorum of the reader's witnesses. A time token is named and never read here, so with one T stays open. */
  judgeTime({ checkpoint, cosigners, quorumTime: time }) {
    const by = time === null ? "" : `the first ${checkpoint.size} events of the log existed not later than ${spelledTime(time)}, by the clocks of the witnesses of your quorum`;
    const tokens = this.bundle.under("data/time/").filter((name) => name.endsWith(".tsr"));
    if (this.bundle.under("data/time/").length) {
      const why = `this page reads no time token: ${tokens.join(", ") || "data/time/"} is left unread`;
      return this.say("T", "NOT PROVEN", by ? `${by}; ${why}` : why, "openssl ts -verify -data data/time/0.checkpoint -in data/time/0.tsr -CAfile ROOT.pem, or a2a_verify.py, or a2a-ledger verify");
    }
    if (by) return this.say("T", "VALID", `${by}; no earliest time is shown`);
    const why = canVerify ? "no witnesses of a quorum of yours state a time" : NO_SIGNATURES;
    return this.say("T", "NOT PROVEN", cosigners.length ? `one witness's clock is no quorum: ${why}` : why, "cosignatures of a quorum, or a time token; the recorder's own clock proves nothing");
  }

  async judgeEarlier({ checkpoint: now, logs }) {
    const settle = `an earlier signed head of ${now.origin} that somebody else kept`;
    if (!this.earlier.length) return this.say("A", "NOT PROVEN", "you gave no earlier signed head", settle);
    const answers = [];
    for (const octets of this.earlier) answers.push(this.judgeOneEarlier(now, await this.openEarlier(octets, now, logs)));
    const order = ["INVALID", "NOT PROVEN", "VALID"];
    return this.say("A", ...answers.sort(([one], [other]) => order.indexOf(one) - order.indexOf(other))[0]);
  }

  async openEarlier(octets, now, logs) {
    try {
      const old = parseCheckpoint(parseNote(octets).text);
      if (logs.length && old.origin === now.origin) await openCheckpoint(octets, logs);
      return old;
    } catch (problem) {
      throw new ReaderProblem(`the earlier head that you gave cannot be used: ${problem.message}`);
    }
  }

  /** Return status, detail, and what would settle it. */
  judgeOneEarlier(now, old) {
    if (old.origin !== now.origin || old.size > now.size || old.size === 0n) return ["NOT PROVEN", `head ${old.size} of ${old.origin} is not an earlier one of this log`, "a bundle under a head that is not older than yours"];
    const name = `data/log/consistency/${old.size}-${now.size}`;
    if (old.size !== now.size && !this.bundle.files.has(name)) return ["NOT PROVEN", `the bundle does not lead from ${old.size} to ${now.size}`, `${name} from the exporter (export --since)`];
    let good = false;
    try {
      good = consistent(old.size, now.size, old.root, now.root, old.size === now.size ? [] : parseHashes(this.bundle.read(name)));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
    }
    return good ? ["VALID", `the log only grew from head ${old.size} to ${now.size}`] : ["INVALID", `the log was rewritten between ${old.size} and ${now.size}`];
  }

  judgeAllLeaves(shown, leaves, checkpoint) {
    const whole = BigInt(leaves.size) === checkpoint.size && this.claims.get("P").status === "VALID" && !shown.streamFaults.length;
    if (whole) this.say("C3", "VALID", `all ${checkpoint.size} leaves of the log are shown; no other carries the task's tag`);
    else this.say("C3", "NOT PROVEN", `${leaves.size} of the log's ${checkpoint.size} leaves are shown`, "all leaves of the log, searched for the task's tag");
  }

  judgeStreams(shown, said, head) {
    const faults = [...shown.streamFaults], streams = endsOf(this.scope);
    for (const [stream, ver] of said.ends || []) if (shown.end(stream) !== ver) faults.push(`${stream}: the exporter signed that it ends at version ${ver}, shown is ${shown.end(stream)}`);
    const whole = this.claims.get("C3").status === "VALID";
    const ends = streams.slice(0, 9).map((stream) => (shown.end(stream) < 0 ? `no ${stream}` : `${stream} versions 0 to ${shown.end(stream)}`)).join(", ");
    this.judge("C2", faults, `${ends}, up to checkpoint ${head.checkpoint.size}; ${whole ? "all leaves of the log are shown" : "which the exporter signed"}`);
    if (faults.length) return;
    const open = (why, settle) => this.say("C2", "NOT PROVEN", why, settle);
    const needed = streams.filter((stream) => stream.startsWith("task:") || stream.startsWith("peer:"));
    if (!needed.length || needed.some((stream) => !shown.keyed.has(stream))) open("the bundle discloses no task's stream key", "that key from the exporter");
    else if (!shown.keyed.has("ledger")) open("the stream of the log's own keys is not disclosed", "data/streams/ledger.key");
    else if (!whole && !said.ends?.size) open("no exporter signed where the streams end: anybody may have left out their last events", "a bundle signed by the log's export key, or all leaves of the log");
    else if (!whole && !head.trusted) open("the exporter who signed where the streams end is not known to belong to a log that you trust", "the log's key, by another way");
  }

  judgeGaps(shown, claimed) {
    if (shown.faults.length) return this.say("X", "NOT PROVEN", "not all records could be read", "an intact bundle");
    const faults = listed(this.bundle, claimed.withheld, shown.gaps) ? [] : ["data/claims.json: its list of parts left out is not what is left out"];
    const since = [...shown.erased, ...shown.unread], later = since.length ? `; since recorded: ${some(since)}` : "";
    return this.judge("X", faults, (shown.gaps.length ? `${shown.gaps.length} parts are left out; length and commitment of each are intact` : "nothing is left out") + later);
  }

  /** Claim R as far as a page goes: statements and the plainest content. It never judges again, so never VALID. */
  async judgeFindings(shown, keys) {
    const { faults, left, checks } = await checkFindings(this.bundle, shown, keys);
    left.push(...shown.unresolved, ...unknownKinds(shown));
    this.checks = checks;
    faults.push(...besideFaults(shown), ...contentFaults(shown));
    if (faults.length) return this.say("R", "INVALID", some(faults));
    const peers = peersOfFindingsElsewhere(shown).map((peer) => `\`a2a-ledger export --peer ${peer}\``);
    const signed = checks.size ? `the signed statement${checks.size === 1 ? " of 1 finding fits" : `s of ${checks.size} findings fit`}; ` : "";
    return this.say("R", "NOT PROVEN", `${signed}this page does not decide and judge again${left.length ? `; ${some(left)}` : ""}`, `a2a-ledger verify, which does${peers.length ? `, of a bundle with these events: those of other tasks by ${peers.join(" and ")}` : ""}`);
  }

  judgePeer(shown, checkpoint) {
    const records = [...shown.records.values()];
    const received = records.filter(({ type, data }) => type === "message.recorded.v1" && data.direction === "in").length;
    const cards = this.policy?.cards ? "; your keys for cards are not used here, this page judges no card's signature" : "";
    this.say("S", "NOT PROVEN", `${received} messages are shown as received; the peer signed none of them${cards}`, "the peer's own ledger (reconcile), or message signatures");
    const peers = [...new Set(records.filter(({ data }) => typeof data.peer_url === "string").map(({ data }) => data.peer_url))].sort();
    this.about = `${this.scope.kind} ${this.scope.value}: ${records.length} events${this.scope.kind === "task" ? "" : ` of ${this.scope.tasks.length} tasks`} recorded by ${checkpoint.origin}: ${countsInWords(shown, this.scope.kind)}; ${peers.join(", ") || "the peer"} signed none of them`;
  }
}

function verdictOf(claims, trusting, required) {
  if (claims.some(({ status }) => status === "INVALID")) return "invalid";
  if (!trusting) return "self-consistent only";
  return required.every((letter) => claims.find(({ claim }) => claim === letter).status === "VALID") ? "verified" : "not proven";
}

function followsTrusted(term, before, logs) {
  const seen = new Set();
  let { key } = term;
  while (term.role === "log" && before.has(key.vkey) && !seen.has(key.vkey)) {
    seen.add(key.vkey);
    key = before.get(key.vkey);
    if (logs.some((one) => one.vkey === key.vkey)) return true;
  }
  return false;
}

function claimedLogKeys(bundle, keys) {
  const logs = keys.terms.filter((term) => term.role === "log").map((term) => term.key);
  const speaking = keys.speaking("log", 2 ** 62);
  const claimed = speaking.length ? speaking : logs;
  for (const name of bundle.under("data/keys/untrusted/log-")) claimed.push(parseVkey(bundle.text(name).replace(/\n+$/, "")));
  return claimed;
}

function readLeaves(bundle, origin) {
  const name = "data/log/events.jsonl", faults = [], good = [], leaves = new Map();
  let lines, rows;
  try {
    [lines, rows] = [bundle.lines(name), bundle.index()];
    if (lines.length !== rows.length) throw new Problem("data/log/index.tsv: lists another number of events than events.jsonl has");
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    return [good, leaves, [problem.message]];
  }
  let before = -1;
  lines.forEach((raw, at) => {
    try {
      const leaf = parseCanonical(raw, `${name}: line ${at + 1}`);
      if (!exactly(leaf, ["c", "log", "n", "t", "v"]) || !isDigestText(leaf.c) || !isDigestText(leaf.t) || leaf.log !== origin || !isCount(leaf.n) || leaf.v !== 1) throw new Problem(`${name}: line ${at + 1} is not a leaf of log ${origin}`);
      const row = rows[at];
      if (row.line !== at + 1 || row.n !== leaf.n || leaf.n <= before) throw new Problem(`${name}: line ${at + 1} is not what data/log/index.tsv lists there`);
      before = leaf.n;
      leaves.set(leaf.n, { n: leaf.n, c: leaf.c, t: leaf.t, raw });
      good.push(row);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      faults.push(problem.message);
    }
  });
  return [good, leaves, faults];
}

const isDigestText = (value) => typeof value === "string" && /^(?:[0-9a-f]{2})*$/.test(value);

function inclusionFaults(bundle, leaves, checkpoint) {
  const faults = [], note = bundle.read("data/log/checkpoint"), expected = new Set();
  for (const { n, raw } of leaves.values()) {
    const name = `data/log/proofs/${n}.tlog-proof`;
    expected.add(name);
    try {
      const proof = parseProof(bundle.read(name));
      if (proof.index !== BigInt(n)) throw new Problem("proves another leaf");
      if (!same(utf8(proof.note), note)) throw new Problem("leads to another checkpoint than data/log/checkpoint");
      if (!included(proof.index, checkpoint.size, leafHash(raw), proof.path, checkpoint.root)) throw new Problem("does not lead from the leaf to the checkpoint's root");
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      faults.push(problem.message.startsWith(name) ? problem.message : `${name}: ${problem.message}`);
    }
  }
  for (const name of bundle.under("data/log/proofs/")) if (!expected.has(name)) faults.push(`${name}: proves a leaf that is not shown`);
  return faults;
}

function spelledTime(seconds) {
  const time = new Date(Number(seconds) * 1000);
  return Number.isNaN(time.getTime()) ? `second ${seconds}` : time.toISOString().replace(".000Z", "Z");
}
