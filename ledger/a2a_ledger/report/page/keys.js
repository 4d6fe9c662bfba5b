// Verifier keys and Ed25519 signatures (docs/format.md 6.1). Keys under which a signature says nothing are refused.

const P = 2n ** 255n - 19n;
const power = (base, exponent) => {
  let result = 1n;
  for (base = ((base % P) + P) % P; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = (result * base) % P;
    base = (base * base) % P;
  }
  return result;
};
const D = ((-121665n * power(121666n, P - 2n)) % P + P) % P;

/** Return both square roots modulo P, or none. */
function squareRoots(number) {
  number = ((number % P) + P) % P;
  const root = power(number, (P + 3n) / 8n);
  for (const one of [root, (root * power(2n, (P - 1n) / 4n)) % P]) {
    if ((one * one) % P === number) return [one, (P - one) % P];
  }
  return [];
}

/** y of the eight points whose order divides 8; a point of order 8 has d·y⁴ + 2·y² - 1 = 0. */
const SMALL_ORDER = new Set([0n, 1n, P - 1n]);
for (const root of squareRoots(1n + D)) {
  for (const y of squareRoots((root - 1n) * power(D, P - 2n))) SMALL_ORDER.add(y);
}

function checkPublicKey(octets) {
  if (octets.length !== 32) throw new Problem(`an Ed25519 public key has 32 octets, found ${octets.length}`);
  const y = BigInt(`0x${hex(Uint8Array.from(octets).reverse())}`) & ((1n << 255n) - 1n);
  if (y >= P) throw new Problem("this Ed25519 public key is not canonical");
  if (SMALL_ORDER.has(y)) throw new Problem("this Ed25519 public key has small order, so its signatures prove nothing");
  if (power((y * y - 1n) * (D * y * y + 1n), (P - 1n) / 2n) === P - 1n) throw new Problem("these 32 octets are no Ed25519 public key");
}

const ED25519 = 1, ECDSA = 2, COSIGNATURE = 4, TREE_HEAD = 5, MLDSA = 6;
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
const isKeyName = (name) => name !== "" && !name.includes("+") && !SPACE.test(name);

/** Read a C2SP vkey and check the key id that it states. */
function parseVkey(text) {
  const match = typeof text === "string" ? /^([^+]*)\+([0-9a-f]{8})\+([^]*)$/.exec(text) : null;
  if (match === null) throw new Problem("a verifier key has the form <name>+<8 hex digits>+<base64>");
  const [, name, stated, encoded] = match;
  const blob = unbase64(encoded, "a verifier key");
  const kind = blob.length ? blob[0] : 0, publicKey = blob.slice(1);
  if (![ED25519, ECDSA, COSIGNATURE, TREE_HEAD, MLDSA].includes(kind)) throw new Problem("a verifier key of a signature type that C2SP does not assign");
  if (!isKeyName(name)) throw new Problem("a key name is not empty and holds no white space and no plus sign");
  const usable = kind === ED25519 || kind === COSIGNATURE;
  if (usable) checkPublicKey(publicKey);
  const named = joined(utf8(name), Uint8Array.of(10, kind), kind === TREE_HEAD ? sha256(publicKey) : publicKey);
  const keyId = hex(sha256(kind === ECDSA ? publicKey : named).subarray(0, 4));
  if (keyId !== stated) throw new Problem(`the verifier key states key id ${stated}, its name and key give ${keyId}`);
  return { name, keyId, kind, publicKey, usable, vkey: text };
}

const keyName = (key) => `${key.name}+${key.keyId}`;

/** Whether this browser checks Ed25519 at all: tried once on the first test of RFC 8032 section 7.1, and on a broken one. */
let canVerify = false;

async function tryBrowser() {
  const key = unhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  const signature = unhex("e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b");
  const nothing = new Uint8Array(0);
  canVerify = (await verified(key, signature, nothing)) && !(await verified(key, signature, Uint8Array.of(0)));
}

async function verified(publicKey, signature, message) {
  if (signature.length !== 64 || !globalThis.crypto?.subtle) return false;
  try {
    const key = await crypto.subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify({ name: "Ed25519" }, key, signature, message);
  } catch {
    return false;
  }
}

/** Check a bare signature by a key of type 01 or 04; where the browser cannot, nothing is said against it. */
const signedBy = async (key, signature, message) => !canVerify || (key.usable && verified(key.publicKey, signature, message));
