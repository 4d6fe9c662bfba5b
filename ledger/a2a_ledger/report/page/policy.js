// What the reader trusts: verifier keys one a line, or a C2SP tlog-policy with our comment lines. It comes from the reader alone.

const ROLES = ["log", "statement", "export", "witness", "peer"];

/** Return {logs, witnesses: Map, groups: Map, quorum, cards}, or null for nothing at all. */
function parseTrust(text) {
  const lines = text.split(/\r?\n/).map((line) => line.replace(/^[ \t]+|[ \t]+$/g, ""));
  if (lines.every((line) => line === "")) return null;
  const policy = { logs: [], witnesses: new Map(), groups: new Map(), quorum: null, others: [], cards: 0, roles: new Map(), grouped: new Set() };
  const bare = lines.every((line) => line === "" || line.startsWith("#") || /^[^ \t]+\+[0-9a-f]{8}\+[^ \t]+$/.test(line));
  lines.forEach((line, at) => {
    try {
      if (/[\0-\x08\x0a-\x1f\x7f]/.test(line)) throw new Problem("holds control characters");
      if (bare && line !== "" && !line.startsWith("#")) takeKey(policy, line);
      else takeLine(policy, line);
    } catch (problem) {
      throw new Problem(`line ${at + 1}: ${problem.message}`);
    }
  });
  if (policy.quorum === null) {
    if (!bare) throw new Problem("a policy has exactly one quorum line: write `quorum none` to ask for no witness");
    policy.quorum = "none";
  }
  return policy;
}

function takeKey(policy, vkey) {
  const key = parseVkey(vkey);
  if (key.kind === COSIGNATURE) policy.witnesses.set(key.name, key);
  else policy.logs.push(key);
}

function takeLine(policy, line) {
  const ours = /^#[ \t]*a2a-ledger:(.*)$/.exec(line);
  if (ours) return takeOurs(policy, ours[1].split(/[ \t]+/).filter(Boolean));
  if (line === "" || line.startsWith("#")) return undefined;
  const [word, ...fields] = line.split(/[ \t]+/);
  if (word === "log" && (fields.length === 1 || fields.length === 2)) return policy.logs.push(usableKey(policy, "log", fields[0], ED25519));
  if (word === "witness" && (fields.length === 2 || fields.length === 3)) {
    define(policy, fields[0]);
    return policy.witnesses.set(fields[0], usableKey(policy, "witness", fields[1], COSIGNATURE));
  }
  if (word === "group" && fields.length > 2) return takeGroup(policy, fields[0], fields[1], fields.slice(2));
  if (word === "quorum" && fields.length === 1) {
    if (policy.quorum !== null) throw new Problem("a second quorum line");
    if (fields[0] !== "none") defined(policy, fields[0]);
    policy.quorum = fields[0];
    return undefined;
  }
  throw new Problem("expected a log, witness, group or quorum line");
}

function takeOurs(policy, fields) {
  if (fields.length === 3 && fields[0] === "card") {
    policy.cards += 1; // a key for a peer's cards: this page judges no card's signature
    return;
  }
  if (fields.length === 2 && fields[0] === "tsa" && /^[A-Za-z0-9+/]+={0,2}$/.test(fields[1])) return; // this page reads no time token
  if (fields.length !== 2 || !ROLES.includes(fields[0])) throw new Problem("expected `# a2a-ledger:` and `<role> <vkey>`, `card <url> <key>` or `tsa <certificate>`");
  const key = usableKey(policy, fields[0], fields[1], fields[0] === "witness" ? COSIGNATURE : ED25519);
  policy.others.push({ role: fields[0], key });
}

function takeGroup(policy, name, threshold, members) {
  define(policy, name);
  for (const member of members) {
    defined(policy, member);
    if (policy.grouped.has(member)) throw new Problem(`${member} is a member already`);
    policy.grouped.add(member);
  }
  const counts = { all: BigInt(members.length), any: 1n };
  const needed = has(counts, threshold) ? counts[threshold] : parseNumber(threshold, "the threshold of a group");
  if (needed < 1n || needed > members.length) throw new Problem(`group ${name}: expected a threshold of 1 to ${members.length}`);
  policy.groups.set(name, { needed, members });
}

function usableKey(policy, role, vkey, kind) {
  const key = parseVkey(vkey);
  if (key.usable && key.kind !== kind) throw new Problem(`a ${role} key is of another signature type`);
  const octets = hex(key.publicKey);
  if (policy.roles.has(octets)) throw new Problem("this key was already given: one key has one role, once");
  policy.roles.set(octets, role);
  return key;
}

function define(policy, name) {
  if (name === "none" || policy.witnesses.has(name) || policy.groups.has(name)) throw new Problem(`the name ${name} is taken`);
}

function defined(policy, name) {
  if (!policy.witnesses.has(name) && !policy.groups.has(name)) throw new Problem(`${name} is no witness or group of a line above`);
}

const trustedFor = (policy, role) => [
  ...(role === "log" ? policy.logs : role === "witness" ? policy.witnesses.values() : []),
  ...policy.others.filter((one) => one.role === role).map((one) => one.key),
];

/** Say whether enough of the policy's witnesses are among those that cosigned. */
function quorumMet(policy, signers) {
  const keys = signers.map(({ key }) => key.vkey);
  const met = new Set(["none"]);
  for (const [name, { vkey }] of policy.witnesses) if (keys.includes(vkey)) met.add(name);
  for (const [name, { needed, members }] of policy.groups) { // the members of each are of lines above
    if (BigInt(members.filter((member) => met.has(member)).length) >= needed) met.add(name);
  }
  return met.has(policy.quorum);
}

/** Return when the quorum was met, by the witnesses' clocks; null: it was not, or none is asked for. */
function quorumTime(policy, signers) {
  if (policy.quorum === "none") return null;
  const times = signers.map(({ time }) => time).sort((one, other) => (one < other ? -1 : one > other ? 1 : 0));
  return times.find((time) => quorumMet(policy, signers.filter((signer) => signer.time <= time))) ?? null;
}
