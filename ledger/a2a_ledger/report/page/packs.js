// Packs: many small files in few large ones (docs/format.md 11.4), and what a bundle is about.

const PACKS = "data/packs/", MOST_PACKED = 2000000;
const PACKED = /^data\/(?:records\/[0-9]+\.(?:json|salt)|log\/proofs\/[0-9]+\.tlog-proof|statements\/[0-9]+\.dsse\.json|blobs\/[0-9a-f]{64}\/[0-9]+(?:\.salt|\.hole)?)$/;
const LONGEST_LINE = 9 + 1 + 255 + 1;

/** The files of a zip with those of its packs in their place. */
function unpack(zipped) {
  const files = new Map([...zipped].filter(([name]) => !name.startsWith(PACKS)));
  const packs = zipped.size - files.size;
  for (const name of packs ? files.keys() : []) if (PACKED.test(name)) throw new Problem(`${name}: stands beside the packs, expected in one`);
  let count = 0;
  for (let number = 0; number < packs; number++) {
    const pack = `${PACKS}${number}`, octets = zipped.get(pack);
    if (octets === undefined) throw new Problem(`${pack} is missing: packs are numbered from 0 without a gap`);
    for (let at = 0; at < octets.length;) {
      const end = octets.subarray(at, at + LONGEST_LINE).indexOf(10);
      const match = end < 0 ? null : /^(0|[1-9][0-9]{0,8}) ([A-Za-z0-9._/-]{1,255})$/.exec(String.fromCharCode(...octets.subarray(at, at + end)));
      if (match === null || ++count > MOST_PACKED) throw new Problem(`${pack}: no length and name at octet ${at}, or too many files`);
      const start = at + end + 1;
      at = start + Number(match[1]);
      if (at > octets.length || files.has(match[2]) || !PACKED.test(match[2])) throw new Problem(`${pack}: ${match[2]} is cut, there twice, or no file of a pack`);
      files.set(match[2], octets.subarray(start, at));
    }
  }
  return files;
}

/** What a bundle is about: {kind, value, tasks}, or null where its claims do not say it. */
function scopeOf(claimed, packed) {
  const tasks = packed ? claimed.tasks : [claimed.task];
  if (!Array.isArray(tasks) || tasks.some((task, at) => typeof task !== "string" || !TASK.test(task) || (at && task <= tasks[at - 1]))) return null;
  const selection = packed ? claimed.selection : { task: claimed.task };
  if (!isObject(selection) || Object.keys(selection).length !== 1) return null;
  const [[kind, value]] = Object.entries(selection);
  const fits = typeof value === "string" && ((kind === "task" && tasks.length === 1 && tasks[0] === value) || (kind === "context" && tasks.length > 0) || (kind === "peer" && /^[0-9a-f]{32}$/.test(value)));
  return fits ? { packed, kind, value, tasks } : null;
}

/** The streams that are shown whole, sorted. */
function endsOf({ kind, value, tasks }) {
  const owners = kind === "peer" ? [`peer:${value}`] : [];
  return ["ledger", ...tasks.flatMap((task) => [`task:${task}`, `findings:${task}`]), ...owners.flatMap((owner) => [owner, `findings:${owner}`])].sort();
}

const formOf = ({ packed }) => `a2a-evidence/${packed ? 2 : 1}`;
const saidTwice = ({ packed }) => ["checkpoint", "ends", "later_events", "withheld", ...(packed ? ["peers", "selection", "tasks"] : ["peer", "task"])];
const identifierOf = ({ packed, kind, value }) => (packed ? hex(sha256(utf8(canonical({ [kind]: value })))).slice(0, 40) : `task:${value}`);
const notClaimed = ({ kind }) => [...TABLES.not_claimed, ...(kind === "task" ? [] : [TABLES.not_all])];
const peerOf = (shown, task) => String((shown.streams.get(`task:${task}`) || []).find(({ data }) => has(data, "peer"))?.data.peer ?? "");

/** The members of claims.json that say what the bundle is about. */
function scopeMembers({ packed, kind, value, tasks }, shown) {
  const peers = tasks.map((task) => peerOf(shown, task));
  return packed ? { peers: [...new Set(peers)].sort(), selection: { [kind]: value }, tasks } : { peer: peers[0] ?? "", task: value };
}

/** One sentence for each stream or task that does not belong here. */
function strangers(scope, shown) {
  const { packed, kind, value, tasks } = scope, known = new Set(endsOf(scope)), faults = [];
  for (const stream of shown.streams.keys()) {
    if (!known.has(stream) && !stream.startsWith("peer:") && !stream.startsWith("findings:peer:")) faults.push(`${stream} is shown, which is neither of the ${kind} nor of a peer`);
  }
  for (const task of packed ? tasks : []) {
    const events = shown.streams.get(`task:${task}`) || [];
    const named = kind !== "context" || events.some(({ data }) => data.context_id === value);
    if (!events.length || !named || (kind === "peer" && peerOf(shown, task) !== value)) faults.push(`task ${task} is not shown, or not one of the ${kind} that is named`);
  }
  return faults;
}

/** Whether what was left out is what the bundle lists. */
function listed(bundle, withheld, gaps) {
  if (!bundle.packed) return equal(withheld, gaps);
  const lines = concat(gaps.map((gap) => utf8(`${canonical(gap)}\n`)));
  return bundle.files.has("data/withheld.jsonl") && same(bundle.read("data/withheld.jsonl"), lines) && equal(withheld, { parts: gaps.length, sha256: hex(sha256(lines)) });
}
