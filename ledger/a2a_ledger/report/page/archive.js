// The one form of zip that a bundle has (docs/format.md 11.1). What two readers could read differently is refused.

const LIMITS = { files: 10000, file: 64 * 1024 * 1024, total: 1024 * 1024 * 1024, ratio: 200, name: 255 };

/** Return {files: Map of name to octets, damaged: names whose checksum does not fit}. */
async function readArchive(octets) {
  if (octets.length > LIMITS.total) throw new Problem(`${octets.length} octets; a bundle may have ${LIMITS.total}`);
  const entries = readDirectory(octets);
  checkNames(entries.map((entry) => entry.name));
  const files = new Map();
  const damaged = [];
  let expected = 0;
  for (const entry of [...entries].sort((a, b) => a.offset - b.offset)) {
    if (entry.offset !== expected) throw new Problem(`${entry.name} begins at octet ${entry.offset}, expected ${expected}: a gap or an overlap`);
    const start = checkLocalHeader(octets, entry);
    expected = start + entry.packed;
    if (expected > octets.length) throw new Problem(`${entry.name} breaks off`);
    const content = await unpacked(octets.subarray(start, expected), entry);
    if (crc32(content) !== entry.crc) damaged.push(entry.name);
    files.set(entry.name, content);
  }
  const directory = octets.length - 22 - entries.reduce((sum, entry) => sum + entry.listed, 0);
  if (expected !== directory) throw new Problem("octets between the last file and the directory belong to no file");
  return { files, damaged: damaged.sort() };
}

function readDirectory(octets) {
  const size = octets.length;
  if (size < 22) throw new Problem(`not a bundle: ${size} octets are too few for a zip file`);
  const view = new DataView(octets.buffer, octets.byteOffset, size);
  const end = size - 22;
  if (view.getUint32(end, true) !== 0x06054b50) throw new Problem("not a whole zip file: no end record in the last 22 octets (no zip at all, cut short, or followed by a comment)");
  const short = (at) => view.getUint16(at, true);
  const [disk, first, here, count] = [4, 6, 8, 10].map((at) => short(end + at));
  const length = view.getUint32(end + 12, true), offset = view.getUint32(end + 16, true);
  if (disk || first || here !== count || short(end + 20)) throw new Problem("the zip's end record speaks of several disks or of a comment");
  if (count > LIMITS.files) throw new Problem(`${count} files; a bundle may have ${LIMITS.files}`);
  if (offset + length !== end) throw new Problem("octets in front of or inside of the zip's directory belong to nothing");
  const entries = [];
  let at = offset, total = 0;
  for (let i = 0; i < count; i++) {
    const entry = readEntry(view, octets, at, end);
    entries.push(entry);
    at += entry.listed;
    total += entry.size;
    if (total > LIMITS.total) throw new Problem(`the files would take more than ${LIMITS.total} octets unpacked`);
  }
  if (at !== end) throw new Problem("octets at the end of the zip's directory belong to no entry");
  return entries;
}

function readEntry(view, octets, at, stop) {
  if (at + 46 > stop) throw new Problem(`the zip's directory breaks off at octet ${at}`);
  const short = (from) => view.getUint16(at + from, true), long = (from) => view.getUint32(at + from, true);
  const where = `the zip's directory entry at octet ${at}`;
  if (long(0) !== 0x02014b50) throw new Problem(`${where} does not begin as one`);
  const nameLength = short(28);
  if (at + 46 + nameLength > stop) throw new Problem(`${where} breaks off in its name`);
  const raw = octets.subarray(at + 46, at + 46 + nameLength);
  if (raw.some((octet) => octet > 127)) throw new Problem(`${where} has a name outside of ASCII`);
  const name = String.fromCharCode(...raw);
  const [flags, method] = [short(8), short(10)];
  const [crc, packed, size] = [long(16), long(20), long(24)];
  if (flags & ~0x800) throw new Problem(`${name} is encrypted or streamed`);
  if (method !== 0 && method !== 8) throw new Problem(`${name} is packed by method ${method}`);
  if (short(30) || short(32) || short(34)) throw new Problem(`${name} carries extra fields or a comment`);
  if (![0, 0o100000].includes((long(38) >>> 16) & 0o170000)) throw new Problem(`${name} is a link, a device or a folder, not a file`);
  if (size > LIMITS.file || (method === 0 && size !== packed) || size > LIMITS.ratio * packed) {
    throw new Problem(`${name} says that ${packed} octets unpack to ${size}; limits are ${LIMITS.file} and ${LIMITS.ratio} to 1`);
  }
  return { name, raw, method, crc, packed, size, offset: long(42), listed: 46 + nameLength, header: octets.subarray(at + 6, at + 30) };
}

function checkNames(names) {
  const seen = new Set();
  for (const name of names) {
    const segments = name.split("/");
    if (!/^[A-Za-z0-9._-]+(?:\/[A-Za-z0-9._-]+)*$/.test(name) || name.length > LIMITS.name || segments.includes("..") || segments.includes(".")) {
      throw new Problem(`${name} is not a plain relative file name`);
    }
    const folded = name.toLowerCase();
    if (seen.has(folded)) throw new Problem(`${name} stands twice, or twice on some systems`);
    seen.add(folded);
  }
  for (const name of seen) {
    for (let cut = name.lastIndexOf("/"); cut > 0; cut = name.lastIndexOf("/", cut - 1)) {
      const folder = name.slice(0, cut);
      if (seen.has(folder)) throw new Problem(`${folder} is a file and a folder at once`);
    }
  }
}

/** Return where the content begins: the local header repeats version to name length of the directory's line. */
function checkLocalHeader(octets, entry) {
  const at = entry.offset;
  const start = at + 30;
  const view = new DataView(octets.buffer, octets.byteOffset, octets.length);
  const fits = start + entry.raw.length <= octets.length && view.getUint32(at, true) === 0x04034b50
    && same(octets.subarray(at + 4, at + 28), entry.header) && view.getUint16(at + 28, true) === 0
    && same(octets.subarray(start, start + entry.raw.length), entry.raw);
  if (!fits) throw new Problem(`${entry.name} has one header in the directory and another at octet ${at}`);
  return start + entry.raw.length;
}

/** Never unpacks more octets than the directory said. */
async function unpacked(packed, entry) {
  if (entry.method === 0) return packed;
  if (typeof DecompressionStream !== "function") throw new Problem(`${entry.name} is compressed, which this browser cannot undo`);
  const content = new Uint8Array(entry.size);
  let at = 0, failed = false;
  try {
    const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    for (let step = await reader.read(); !step.done; step = await reader.read()) {
      if (at + step.value.length > entry.size) {
        await reader.cancel();
        failed = true;
        break;
      }
      content.set(step.value, at);
      at += step.value.length;
    }
  } catch {
    failed = true;
  }
  if (failed || at !== entry.size) throw new Problem(`${entry.name} does not unpack to the ${entry.size} octets that the directory says`);
  return content;
}

const CRC = Uint32Array.from({ length: 256 }, (_, octet) => {
  for (let i = 0; i < 8; i++) octet = octet & 1 ? 0xedb88320 ^ (octet >>> 1) : octet >>> 1;
  return octet;
});

function crc32(octets) {
  let crc = 0xffffffff;
  for (let at = 0; at < octets.length; at++) crc = CRC[(crc ^ octets[at]) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
