// The files of a bundle: their names, their greatest sizes, and the manifests (docs/format.md 11).

const MIB = 1024 * 1024;
const KINDS = TABLES.files.map(([pattern, most]) => [new RegExp(`^(?:${pattern})$`), most]);
const BAGIT = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
const INDEX_HEAD = "line\tindex\tstream\tver\trecord\tbody";

const ONLY_PACKED = new RegExp(`^(?:${TABLES.only_packed})$`);

/** How large a file may be, in a bundle with packs or without; undefined: it has no such file. */
function mostOf(name, packed = false) {
  if (packed && (TABLES.larger.includes(name) || ONLY_PACKED.test(name))) return LIMITS.file;
  return KINDS.find(([pattern]) => pattern.test(name))?.[1];
}

/** A bundle's files in memory. */
class Bundle {
  constructor({ files, damaged }) {
    this.zipped = files;
    this.packed = [...files.keys()].some((name) => name.startsWith(PACKS));
    this.damaged = damaged;
    for (const name of ["bagit.txt", "manifest-sha256.txt", "tagmanifest-sha256.txt"]) {
      if (!files.has(name)) throw new Problem(`this zip is no evidence bundle: ${name} is missing`);
    }
    this.files = unpack(files);
  }

  /** Every file of the zip and of its packs. */
  get all() { return new Map([...this.zipped, ...this.files]); }

  read(name) {
    const octets = this.files.get(name);
    if (octets === undefined) throw new Problem(`${name} is missing from the bundle`);
    return octets;
  }

  text(name) { return textOf(this.read(name), name); }
  json(name) { return parseCanonical(this.read(name), name); }
  under(folder) { return [...this.files.keys()].filter((name) => name.startsWith(folder)).sort(); }

  secret(name) {
    const octets = this.read(name);
    if (octets.length !== 32) throw new Problem(`${name}: expected 32 octets, found ${octets.length}`);
    return octets;
  }

  /** Lines that each end in a line feed, as octets. */
  lines(name) {
    const octets = this.read(name);
    if (octets[octets.length - 1] !== 10) throw new Problem(`${name}: the last line does not end in a line feed`);
    const lines = [];
    for (let at = 0; at < octets.length;) {
      const end = octets.indexOf(10, at);
      lines.push(octets.subarray(at, end));
      at = end + 1;
    }
    return lines;
  }

  index() {
    const name = "data/log/index.tsv";
    const lines = this.text(name).split("\n");
    if (lines[0] !== INDEX_HEAD || lines[lines.length - 1] !== "" || lines.length < 2) throw new Problem(`${name}: expected the columns of section 11.2 and a line feed at the end`);
    return lines.slice(1, -1).map((line, at) => {
      const cells = line.split("\t");
      const counts = [cells[0], cells[1], cells[3]];
      if (cells.length !== 6 || !counts.every((cell) => /^(?:0|[1-9][0-9]{0,15})$/.test(cell))) throw new Problem(`${name}: line ${at + 2} is not as section 11.2 has it`);
      return { line: Number(cells[0]), n: Number(cells[1]), stream: cells[2], ver: Number(cells[3]), record: cells[4], body: cells[5] };
    });
  }

  streamKey(stream) {
    const name = streamKeyFile(stream);
    return this.files.has(name) ? this.secret(name) : null;
  }

  /** The parts of a blob in order: {salt, content} or {length, hash}. */
  parts(blob) {
    const parts = [];
    for (;;) {
      const name = `data/blobs/${blob}/${parts.length}`;
      const there = [name, `${name}.salt`, `${name}.hole`].map((one) => this.files.has(one));
      if (there[0] && there[1] && !there[2]) parts.push({ salt: this.secret(`${name}.salt`), content: this.read(name) });
      else if (!there[0] && !there[1] && there[2]) parts.push(holeOf(`${name}.hole`, this.read(`${name}.hole`)));
      else if (there.includes(true)) throw new Problem(`${name}: expected this file and its .salt, or one .hole in their place`);
      else return parts;
    }
  }
}

function holeOf(name, octets) {
  const match = /^\[(0|[1-9][0-9]{0,15}),"([0-9a-f]{64})"\]$/.exec(String.fromCharCode(...octets));
  if (match === null || !Number.isSafeInteger(Number(match[1]))) throw new Problem(`${name}: expected [length,"<64 hex digits>"]`);
  return { length: Number(match[1]), hash: unhex(match[2]) };
}

const recordFile = (n) => `data/records/${n}.json`;
const statementFile = (n) => `data/statements/${n}.dsse.json`;
const streamKeyFile = (stream) => `data/streams/${stream.replaceAll(":", ".")}.key`;

const oversize = ({ all, packed }) => [...all].filter(([name, octets]) => octets.length > (mostOf(name, packed) ?? Infinity))
  .map(([name, octets]) => `${name}: ${octets.length} octets; such a file may have ${mostOf(name, packed)}`).sort();
const foreign = ({ all, packed }) => [...all.keys()].filter((name) => mostOf(name, packed) === undefined).sort().map((name) => `${name}: a bundle has no such file`);

/** One sentence for each file that is not what the manifests say. */
async function manifestFaults(bundle) {
  const faults = new Map();
  const names = [...bundle.zipped.keys()];
  for (const name of TABLES.needed) if (!bundle.files.has(name)) faults.set(name, "missing from the bundle");
  if (String.fromCharCode(...bundle.read("bagit.txt")) !== BAGIT) faults.set("bagit.txt", "not the two lines of BagIt 1.0 in UTF-8");
  const payload = new Set(names.filter((name) => name.startsWith("data/")));
  const tags = new Set(names.filter((name) => !name.startsWith("data/") && !/^tagmanifest-sha256\.txt(?:\.sig)?$/.test(name)));
  for (const [manifest, expected] of [["tagmanifest-sha256.txt", tags], ["manifest-sha256.txt", payload]]) {
    let listed;
    try {
      listed = readManifest(bundle, manifest);
    } catch (problem) {
      faults.set(manifest, problem.message);
      continue;
    }
    for (const name of [...listed.keys()].sort()) {
      if (!expected.has(name)) faults.set(name, `listed in ${manifest}, missing from the bundle`);
    }
    for (const name of [...expected].sort()) {
      const stated = listed.get(name);
      if (stated === undefined) faults.set(name, `in the bundle, not listed in ${manifest}`);
      else if (hex(await digest(bundle.zipped.get(name))) !== stated) faults.set(name, `not what ${manifest} says: changed`);
    }
  }
  for (const name of bundle.damaged) if (!faults.has(name)) faults.set(name, "does not fit its checksum in the zip");
  return [...faults].map(([name, what]) => (what.startsWith(name) ? what : `${name}: ${what}`));
}

function readManifest(bundle, manifest) {
  const lines = bundle.text(manifest).split("\n");
  if (lines.pop() !== "") throw new Problem(`${manifest}: the last line does not end in a line feed`);
  const listed = new Map();
  lines.forEach((line, at) => {
    const match = /^([0-9a-f]{64}) {2}([A-Za-z0-9._/-]+)$/.exec(line);
    if (match === null) throw new Problem(`${manifest}: line ${at + 1} is not '<sha256>  <name>'`);
    if (listed.has(match[2])) throw new Problem(`${manifest}: line ${at + 1} lists a file again`);
    listed.set(match[2], match[1]);
  });
  if ([...listed.keys()].some((name, at, names) => at && names[at - 1] > name)) throw new Problem(`${manifest}: its lines are not sorted by name`);
  return listed;
}
