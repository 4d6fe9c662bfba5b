// Checks an unpacked bundle with Node's own crypto: node verify.mjs BAG LOG-VKEY EXPORT-VKEY
//
// Both manifests, the exporter's two signatures (over the tag manifest, and DSSE), the checkpoint by the log's key, and
// each leaf shown against its proof (RFC 9162, section 2.1.3.2). Exit 0 and one line, or 1 and one line that says why.
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const [bag, logKey, exportKey] = process.argv.slice(2);
const read = (...parts) => readFileSync(join(bag, ...parts));
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
const refuse = (why) => { console.log(`refused: ${why}`); process.exit(1); };

function keyOf(vkey) {
  const [name, id, ...rest] = vkey.split("+");
  const octets = Buffer.from(rest.join("+"), "base64");
  if (octets.length !== 33 || octets[0] !== 1) refuse("a key that is not Ed25519");
  if (sha256(name, "\n", octets).subarray(0, 4).toString("hex") !== id) refuse("a key id that does not fit");
  const x = octets.subarray(1).toString("base64url");
  return { name, id, key: createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" }) };
}

function manifest(file, present) {
  const listed = new Map(read(file).toString().trimEnd().split("\n").map((line) => [line.slice(66), line.slice(0, 64)]));
  if (listed.size !== present.length || present.some((name) => !listed.has(name))) refuse(`${file} lists other files`);
  for (const [name, digest] of listed) if (sha256(read(name)).toString("hex") !== digest) refuse(`${name} was changed`);
}

function checkpoint(signed, { name, id, key }) {
  const end = signed.indexOf("\n\n") + 1;
  const [text, lines] = [signed.slice(0, end), signed.slice(end + 1).trimEnd().split("\n")];
  const [origin, size, root] = text.split("\n");
  const ours = lines.map((line) => line.split(" ")).filter((line) => line[0] === "—" && line[1] === name)
    .map((line) => Buffer.from(line[2], "base64")).filter((octets) => octets.subarray(0, 4).toString("hex") === id);
  if (origin !== name || !ours.length) refuse("a checkpoint that this key did not sign");
  if (!ours.every((octets) => verify(null, Buffer.from(text), key, octets.subarray(4)))) refuse("a false signature of the checkpoint");
  return { size: BigInt(size), root: Buffer.from(root, "base64") };
}

function included(leaf, index, path, { size, root }) {
  let [at, last, made] = [BigInt(index), size - 1n, sha256("\0", leaf)];
  if (at > last) return false;
  for (const line of path) {
    const sibling = Buffer.from(line, "base64");
    if (last === 0n || sibling.length !== 32) return false;
    if (at % 2n === 1n || at === last) {
      made = sha256("\x01", sibling, made);
      while (at % 2n === 0n && at !== 0n) [at, last] = [at / 2n, last / 2n];
    } else made = sha256("\x01", made, sibling);
    [at, last] = [at / 2n, last / 2n];
  }
  return last === 0n && made.equals(root);
}

const entries = readdirSync(bag, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile())
  .map((entry) => join(entry.path, entry.name).slice(bag.length + 1));
manifest("tagmanifest-sha256.txt", entries.filter((name) => !name.includes("/") && !name.startsWith("tagmanifest-")));
manifest("manifest-sha256.txt", entries.filter((name) => name.startsWith("data/")));

const exporter = keyOf(exportKey).key;
if (!verify(null, read("tagmanifest-sha256.txt"), exporter, read("tagmanifest-sha256.txt.sig"))) refuse("the exporter's signature");
const envelope = JSON.parse(read("data/export.dsse.json"));
const payload = Buffer.from(envelope.payload, "base64");
const pae = Buffer.concat([Buffer.from(`DSSEv1 ${envelope.payloadType.length} ${envelope.payloadType} ${payload.length} `), payload]);
if (!verify(null, pae, exporter, Buffer.from(envelope.signatures[0].sig, "base64"))) refuse("the exporter's statement");
const shown = read("data/log/events.jsonl");
if (JSON.parse(payload).subject[0].digest.sha256 !== sha256(shown).toString("hex")) refuse("a statement about other leaves");

const signed = read("data/log/checkpoint").toString();
const head = checkpoint(signed, keyOf(logKey));
const leaves = shown.toString().trimEnd().split("\n");
for (const leaf of leaves) {
  const { n } = JSON.parse(leaf);
  const [top, under] = read("data/log/proofs", `${n}.tlog-proof`).toString().split(/\n\n(.*)/s);
  const [version, index, ...path] = top.split("\n");
  if (version !== "c2sp.org/tlog-proof@v1" || index !== `index ${n}` || under !== signed) refuse(`no proof of leaf ${n}`);
  if (!included(leaf, n, path, head)) refuse(`leaf ${n} is not under the checkpoint`);
}
console.log(`${leaves.length} leaves under ${head.size}, signed by the exporter`);
