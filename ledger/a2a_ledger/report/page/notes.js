// C2SP signed notes, checkpoints, proofs and policies (docs/format.md 5 and 6). Sizes are BigInt: they go up to 2^63 - 1.

const MOST_NUMBER = 2n ** 63n - 1n;

function checkedText(octets, what) {
  if (octets.length > 1000000) throw new Problem(`${what}: may have 1000000 octets`);
  const text = textOf(octets, what);
  if (/[\0-\x09\x0b-\x1f]/.test(text)) throw new Problem(`${what}: holds control characters`);
  return text;
}

function parseNumber(text, what) {
  if (!/^(?:0|[1-9][0-9]{0,18})$/.test(text) || BigInt(text) > MOST_NUMBER) throw new Problem(`${what} is a decimal number below 2^63`);
  return BigInt(text);
}

function parseHash(text) {
  const octets = unbase64(text, "a hash");
  if (octets.length !== 32) throw new Problem("a hash is the base64 of 32 octets");
  return octets;
}

function parseNote(octets) {
  const whole = checkedText(octets, "the signed note");
  const end = whole.lastIndexOf("\n\n");
  const lines = whole.slice(end + 2).split("\n");
  if (end < 0 || lines.length < 2 || lines.pop() !== "") throw new Problem("a signed note is a text, an empty line and signature lines");
  if (lines.length > 100) throw new Problem("a signed note may have 100 signature lines");
  const signatures = lines.map((line) => {
    const [dash, name, encoded, ...others] = line.split(" ");
    if (dash !== "—" || others.length || encoded === undefined || !isKeyName(name)) throw new Problem("a signature line is '— <name> <base64>'");
    const blob = unbase64(encoded, "a signature line");
    if (blob.length < 5) throw new Problem("a signature line holds a key id and a signature");
    return { name, keyId: hex(blob.subarray(0, 4)), signature: blob.subarray(4) };
  });
  return { text: whole.slice(0, end + 1), signatures };
}

function parseCheckpoint(text) {
  const lines = text.split("\n");
  if (lines.pop() !== "" || lines.length < 3 || lines.includes("")) throw new Problem("a checkpoint has lines for origin, size and root");
  return { origin: lines[0], size: parseNumber(lines[1], "the size of a checkpoint"), root: parseHash(lines[2]) };
}

/** Check a note by known keys; a key of ours whose signature fails refuses the whole note. Returns [{key, time}]. */
async function verifyNote(note, keys) {
  const found = [];
  for (const { name, keyId, signature } of note.signatures) {
    const key = keys.find((one) => one.usable && one.name === name && one.keyId === keyId);
    if (key === undefined) continue;
    let message = utf8(note.text), bare = signature, time = null;
    if (key.kind === COSIGNATURE) {
      if (signature.length !== 72) throw new Problem(`the cosignature of ${keyName(key)} has another length`);
      time = new DataView(signature.buffer, signature.byteOffset).getBigUint64(0);
      if (time > MOST_NUMBER) throw new Problem(`the cosignature of ${keyName(key)} states a time beyond 2^63-1 seconds`);
      message = utf8(`cosignature/v1\ntime ${time}\n${note.text}`);
      bare = signature.subarray(8);
    }
    if (bare.length !== 64 || !(await signedBy(key, bare, message))) throw new Problem(`the signature by ${keyName(key)} does not verify`);
    found.push({ key, time });
  }
  if (!found.length) throw new Problem(`no known key signed it; it is signed by ${note.signatures.map(keyName).join(", ")}`);
  return found;
}

async function openCheckpoint(octets, keys) {
  const note = parseNote(octets), checkpoint = parseCheckpoint(note.text);
  const signers = await verifyNote(note, keys);
  if (!signers.some(({ key }) => key.kind === ED25519 && key.name === checkpoint.origin)) throw new Problem(`no known key of log ${checkpoint.origin} signed it`);
  return { checkpoint, note, signers };
}

function parseProof(octets) {
  const text = checkedText(octets, "a proof");
  const end = text.indexOf("\n\n");
  const [header, ...lines] = (end < 0 ? text : text.slice(0, end)).split("\n");
  if (header !== "c2sp.org/tlog-proof@v1") throw new Problem("a proof begins with c2sp.org/tlog-proof@v1");
  if (lines.length && lines[0].startsWith("extra ")) throw new Problem("has an extra line, which nobody signs");
  if (!lines.length || !lines[0].startsWith("index ")) throw new Problem("a proof has a line `index <number>`");
  return { index: parseNumber(lines[0].slice(6), "the index of a proof"), path: lines.slice(1).map(parseHash), note: end < 0 ? "" : text.slice(end + 2) };
}

function parseHashes(octets) {
  const lines = checkedText(octets, "a list of hashes").split("\n");
  if (lines.pop() !== "") throw new Problem("a list of hashes ends with a line feed");
  return lines.map(parseHash);
}

const leafHash = (octets) => sha256(joined(Uint8Array.of(0), octets));
const nodeHash = (left, right) => sha256(joined(Uint8Array.of(1), left, right));

/** RFC 9162 section 2.1.3.2. */
function included(index, size, hash, path, root) {
  if (index >= size) return false;
  let at = index, last = size - 1n;
  for (const other of path) {
    if (last === 0n) return false;
    if (at & 1n || at === last) {
      hash = nodeHash(other, hash);
      while (!(at & 1n) && at !== 0n) { at >>= 1n; last >>= 1n; }
    } else hash = nodeHash(hash, other);
    at >>= 1n;
    last >>= 1n;
  }
  return last === 0n && same(hash, root);
}

/** RFC 9162 section 2.1.4.2; from size 0 there is nothing to prove. */
function consistent(first, second, old, now, path) {
  if (first === 0n || first > second) return false;
  if (first === second) return !path.length && same(old, now);
  const hashes = (first & (first - 1n)) === 0n ? [old, ...path] : [...path];
  if (!hashes.length) return false;
  let at = first - 1n, last = second - 1n;
  while (at & 1n) { at >>= 1n; last >>= 1n; }
  let one = hashes[0], two = hashes[0];
  for (const other of hashes.slice(1)) {
    if (last === 0n) return false;
    if (at & 1n || at === last) {
      one = nodeHash(other, one);
      two = nodeHash(other, two);
      while (!(at & 1n) && at !== 0n) { at >>= 1n; last >>= 1n; }
    } else two = nodeHash(two, other);
    at >>= 1n;
    last >>= 1n;
  }
  return last === 0n && same(one, old) && same(two, now);
}
