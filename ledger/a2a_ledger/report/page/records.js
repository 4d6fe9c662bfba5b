// The records that a bundle shows, held against the leaves that commit to them (docs/format.md 3, 4 and 12).

const MEMBERS = {
  at: (value) => typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(value),
  blobs: (value) => isObject(value) && Object.values(value).every((blob) => exactly(blob, ["id", "kept", "size"]) && isDigest(blob.id) && ["all", "head", "none"].includes(blob.kept) && isCount(blob.size)),
  data: isObject,
  how: (value) => ["live", "import", "derived"].includes(value),
  log: (value) => typeof value === "string" && /^[a-z0-9][a-z0-9._/-]{0,127}$/.test(value),
  prev: (value) => value === null || isDigest(value),
  stream: (value) => typeof value === "string" && value !== "",
  type: (value) => typeof value === "string" && value !== "",
  v: (value) => value === 1,
  ver: isCount,
};
const DOMAIN = (name) => utf8(`a2a-ledger/${name}/v1\0`);
const isDigest = (value) => typeof value === "string" && /^[0-9a-f]{64}$/.test(value);

const streamCommitment = (key) => hex(sha256(joined(DOMAIN("stream-key"), key)));
const streamTag = (key, ver) => hex(hmac(key, joined(DOMAIN("stream"), u64(ver))));
const findingsKey = (key) => hmac(key, DOMAIN("findings-key"));

async function blobId(parts) {
  const pieces = [];
  for (const part of parts) {
    const hash = part.content ? await digest(joined(DOMAIN("part"), part.salt, part.content)) : part.hash;
    pieces.push(u64(part.content ? part.content.length : part.length), hash);
  }
  return hex(sha256(joined(DOMAIN("blob"), u64(parts.length).subarray(4), ...pieces)));
}

/** Hold a field of an event against its type, as docs/format.md section 2 writes it. */
function fits(value, type) {
  if (Array.isArray(type)) return Array.isArray(value) && value.every((item) => fits(item, type[0]));
  if (isObject(type)) return isObject(value) && Object.keys(type).every((name) => has(value, name) && fits(value[name], type[name]));
  switch (type) {
    case "text": return typeof value === "string";
    case "text?": return value === null || typeof value === "string";
    case "integer": return typeof value === "number";
    case "boolean": return typeof value === "boolean";
    default: return isObject(value);
  }
}

function checkEvent(type, data) {
  if (!has(TABLES.events, type)) return; // an unknown event is kept and shown
  const fields = TABLES.events[type];
  for (const [name, [kind, required]] of Object.entries(fields)) {
    if (has(data, name) ? !fits(data[name], kind) : required) throw new Problem(`its field ${name} is missing or of another type than ${type} has it`);
  }
}

class Shown {
  /** Read every record that the index lists; `leaves` maps a log index to {n, c, t, raw}. */
  static async of(bundle, rows, leaves, origin) {
    const shown = new Shown();
    Object.assign(shown, { bundle, leaves, origin, used: new Set(), records: new Map(), places: new Map(), streams: new Map(), keyed: new Set() });
    Object.assign(shown, { gaps: [], faults: [], streamFaults: [], unresolved: [], unread: [], erased: [] });
    for (const row of rows) await shown.take(row);
    for (const [stream, records] of shown.streams) {
      records.sort((a, b) => a.ver - b.ver || a.n - b.n);
      shown.checkVersions(stream, records);
      shown.checkKey(stream, records);
    }
    shown.checkTags();
    shown.checkReferences();
    shown.lookForLaterHoles();
    for (const folder of ["data/records/", "data/blobs/", "data/streams/"]) {
      for (const name of bundle.under(folder)) if (!shown.used.has(name)) shown.faults.push(`${name}: no event of the bundle refers to it`);
    }
    return shown;
  }

  async take(row) {
    const name = recordFile(row.n);
    this.used.add(name).add(`data/records/${row.n}.salt`);
    try {
      const record = this.readRecord(name, row);
      for (const [role, blob] of Object.entries(record.blobs)) record.parts[role] = await this.readBlob(row.n, role, blob);
      this.records.set(row.n, record);
      this.places.set(`${record.stream} ${record.ver}`, record);
      if (!this.streams.has(record.stream)) this.streams.set(record.stream, []);
      this.streams.get(record.stream).push(record);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      this.faults.push(problem.message.startsWith("data/") ? problem.message : `${name}: ${problem.message}`);
    }
  }

  readRecord(name, row) {
    const raw = this.bundle.read(name), salt = this.bundle.secret(`data/records/${row.n}.salt`);
    const leaf = this.leaves.get(row.n);
    const c = hex(sha256(joined(DOMAIN("record"), salt, raw)));
    if (c !== leaf.c) throw new Problem(`${name}: not the record that leaf ${row.n} commits to`);
    const value = parseCanonical(raw, name);
    if (!exactly(value, Object.keys(MEMBERS))) throw new Problem(`${name}: expected the ten members of a record`);
    for (const [member, check] of Object.entries(MEMBERS)) if (!check(value[member])) throw new Problem(`${name}: its member ${member} is not as section 3 has it`);
    if ((value.ver === 0) !== (value.prev === null)) throw new Problem(`${name}: prev is null in version 0 and only there`);
    checkEvent(value.type, value.data);
    if (value.log !== this.origin) throw new Problem(`${name}: belongs to another log`);
    const body = has(value.blobs, "body") ? `data/blobs/${value.blobs.body.id}` : "-";
    if (row.stream !== value.stream || row.ver !== value.ver || row.record !== name || row.body !== body) {
      throw new Problem(`data/log/index.tsv: lists leaf ${row.n} otherwise than its record`);
    }
    return { ...value, n: row.n, c, t: leaf.t, raw, parts: Object.create(null) };
  }

  async readBlob(n, role, { id, size }) {
    const parts = this.bundle.parts(id), folder = `data/blobs/${id}`;
    if ((await blobId(parts)) !== id) throw new Problem(`${folder}: not the blob ${role} that ${recordFile(n)} commits to`);
    if (parts.reduce((sum, part) => sum + (part.content ? part.content.length : part.length), 0) !== size) throw new Problem(`${folder}: its parts have another size than ${recordFile(n)} says`);
    parts.forEach((part, number) => {
      if (part.content) this.used.add(`${folder}/${number}`).add(`${folder}/${number}.salt`);
      else {
        this.used.add(`${folder}/${number}.hole`);
        this.gaps.push({ blob: id, index: n, part: number, role, size: part.length });
      }
    });
    return parts;
  }

  checkVersions(stream, records) {
    for (let at = 1; at < records.length; at++) {
      const before = records[at - 1], record = records[at];
      if (record.ver === before.ver) this.streamFaults.push(`${stream}: version ${record.ver} is there twice`);
      else if (record.ver === before.ver + 1 && (record.prev !== before.c || record.n < before.n)) this.streamFaults.push(`${stream}: version ${record.ver} does not follow the version before it`);
    }
  }

  taskKey(stream) {
    if (!stream.startsWith("findings:")) return null;
    const owner = stream.slice(9);
    return this.bundle.streamKey(owner.startsWith("peer:") ? owner : `task:${owner}`);
  }

  /** Where the key is disclosed: it is the stream's own, no version is missing, every tag is right, nothing follows. */
  checkKey(stream, records) {
    const name = streamKeyFile(stream);
    let key, task;
    try {
      [key, task] = [this.bundle.streamKey(stream), this.taskKey(stream)];
    } catch (problem) {
      this.streamFaults.push(problem.message);
      return;
    }
    if (key === null) {
      if (task !== null) this.streamFaults.push(`${name} is missing: it follows from the task's key, which is disclosed`);
      return;
    }
    this.used.add(name);
    const first = records[0];
    const ours = stream.startsWith("task:") ? streamCommitment(key).slice(0, 40) === stream.slice(5)
      : (task === null || same(findingsKey(task), key)) && first.ver === 0 && first.data.stream_commitment === streamCommitment(key);
    if (!ours) {
      this.streamFaults.push(`${name}: not the key that ${stream} commits to`);
      return;
    }
    this.keyed.add(stream);
    const last = records[records.length - 1].ver, there = new Set(records.map((record) => record.ver));
    if (there.size !== last + 1) this.streamFaults.push(`${stream}: versions are missing; ${there.size} of ${last + 1} are shown`);
    for (const record of records) if (record.t !== streamTag(key, record.ver)) this.streamFaults.push(`leaf ${record.n} does not carry the tag of ${stream} version ${record.ver}`);
    this.checkNothingFollows(stream, key, last);
    const findings = `findings:${stream.replace(/^task:/, "")}`;
    if (/^(?:task|peer):/.test(stream) && !this.streams.has(findings)) this.checkNothingFollows(findings, findingsKey(key), -1);
  }

  checkNothingFollows(stream, key, last) {
    const after = streamTag(key, last + 1);
    for (const leaf of this.leaves.values()) if (leaf.t === after) this.streamFaults.push(`leaf ${leaf.n} is ${stream} version ${last + 1}, which is not shown`);
  }

  checkTags() {
    const places = new Map();
    for (const leaf of this.leaves.values()) {
      if (places.has(leaf.t)) this.streamFaults.push(`leaves ${places.get(leaf.t)} and ${leaf.n} carry one tag: two stories for one place`);
      places.set(leaf.t, leaf.n);
    }
  }

  checkReferences() {
    const known = new Map([...this.records.values()].map((record) => [`${record.stream} ${record.ver}`, record.c]));
    for (const record of this.records.values()) {
      for (const [field, value] of Object.entries(record.data)) for (const { stream, ver, c } of references(value)) {
        const there = known.get(`${stream} ${ver}`), what = `${stream} version ${ver}`;
        if (there !== undefined && there !== c) this.faults.push(`${recordFile(record.n)}: refers to another ${what} than is shown`);
        if (there !== undefined || (field === "within" && stream.startsWith("task:"))) continue; // the octets stand in the fetch
        if (this.keyed.has(stream)) this.streamFaults.push(`event ${record.n} refers to ${what}, which is not shown`);
        else this.unresolved.push(`event ${record.n} rests on ${what}, which is not shown`);
      }
    }
  }

  /** Tell the holes that a blob was recorded with from those that came later, as far as the records say, and what erasures explain. */
  lookForLaterHoles() {
    const records = [...this.records.values()].sort((a, b) => a.n - b.n);
    const since = Math.min(...records.filter((record) => isObject(record.data.holes)).map((record) => record.n));
    const erasures = new Map(records.flatMap((record) => erasedVersions(record).map((ver) => [`${record.stream} ${ver}`, record])));
    const counts = new Map();
    for (const record of records) {
      const by = erasures.get(`${record.stream} ${record.ver}`);
      for (const [role, parts] of Object.entries(record.parts)) {
        const found = parts.filter((part) => !part.content).length;
        const holes = isObject(record.data.holes) && has(record.data.holes, role) ? record.data.holes[role] : 0;
        const uncut = ["contract", "terms", "statement", "diff", "note", "manifest"].includes(role);
        if (record.n >= since ? found === holes : !(found && (uncut || (found === parts.length && record.blobs[role].kept === "all")))) continue;
        if (by && !uncut) record.erasedBy = by;
        else this.unread.push(`${role} of event ${record.n} has other holes than it was recorded with`);
      }
      if (by) {
        const [gone, still] = counts.get(by) || [0, 0];
        counts.set(by, record.erasedBy ? [gone + 1, still] : [gone, still + 1]);
      }
    }
    for (const [by, [gone, still]] of counts) {
      if (gone) this.erased.push(erasedWords(by, gone));
      if (still) this.erased.push(`event ${by.n} says that ${erasedWords(by, still)}, and it is still there`);
    }
  }

  end(stream) {
    const records = this.streams.get(stream);
    return records ? records[records.length - 1].ver : -1;
  }

  /** The record that a reference names, if it is shown. */
  named(ref) {
    return isObject(ref) ? this.places.get(`${ref.stream} ${ref.ver}`) : undefined;
  }
}

/** The versions of its own stream, before it, whose content an event says is erased. */
function erasedVersions({ type, stream, ver, data }) {
  if (type !== "content.erased.v1" || !Array.isArray(data.records)) return [];
  return data.records.filter((ref) => isObject(ref) && ref.stream === stream && isCount(ref.ver) && ref.ver < ver).map((ref) => ref.ver);
}

const erasedWords = ({ at, data }, events) => `content of ${events === 1 ? "1 event" : `${events} events`} was erased at ${at}, asked for by ${data.requested_by}: ${data.reason}`;

function* references(value) {
  if (Array.isArray(value)) for (const item of value) yield* references(item);
  else if (isObject(value)) {
    if (typeof value.stream === "string" && Number.isSafeInteger(value.ver) && typeof value.c === "string") yield value;
    for (const member of Object.values(value)) yield* references(member);
  }
}

/** The octets of a blob, holes as so many asterisks; null where there is no such blob. What the size limit cut is not filled in. */
function contentOf(record, role) {
  let parts = record.parts[role];
  if (!parts) return null;
  const kept = record.blobs[role].kept;
  if (kept === "none") parts = parts.filter((part) => part.content);
  else if (kept === "head" && parts.length && !parts[parts.length - 1].content) parts = parts.slice(0, -1);
  return joined(...parts.map((part) => part.content || new Uint8Array(Math.min(part.length, MIB)).fill(42)));
}

const isWhole = (record, role) => record.blobs[role].kept === "all" && record.parts[role].every((part) => part.content);

/** How many of the shown events are of the tasks, of their peers and of the log itself, in the words of all verifiers. */
function countsInWords(shown, kind) {
  let tasks = 0, peers = 0, log = 0;
  for (const [stream, records] of shown.streams) {
    if (stream === "ledger") log += records.length;
    else if (/^(?:findings:)?peer:/.test(stream)) peers += records.length;
    else tasks += records.length;
  }
  const of = { task: ["the task", "its peer"], context: ["its tasks", "their peers"], peer: ["its tasks", "the peer itself"] }[kind];
  return `${tasks} of ${of[0]}, ${peers} of ${of[1]}, ${log} of the log itself`;
}
