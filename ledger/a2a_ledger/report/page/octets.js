// Octets: text, hex, base64, SHA-256 and HMAC. Everything in strict forms; a Problem says what is wrong with a bundle.

class Problem extends Error {}

const encoder = new TextEncoder();
const utf8 = (text) => encoder.encode(text);

function textOf(octets, what) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(octets);
  } catch {
    throw new Problem(`${what}: expected UTF-8 text`);
  }
}

const DIGITS = Array.from({ length: 256 }, (_, octet) => octet.toString(16).padStart(2, "0"));
const hex = (octets) => Array.from(octets, (octet) => DIGITS[octet]).join("");

function unhex(text) {
  if (typeof text !== "string" || !/^(?:[0-9a-f]{2})*$/.test(text)) throw new Problem("expected lower-case hex digits");
  return Uint8Array.from(text.match(/../g) || [], (pair) => parseInt(pair, 16));
}

function base64(octets) {
  let text = "";
  for (let at = 0; at < octets.length; at += 0x8000) text += String.fromCharCode(...octets.subarray(at, at + 0x8000));
  return btoa(text);
}

/** Decode standard base64 in the one spelling that encoding gives. */
function unbase64(text, what = "base64") {
  let octets = null;
  if (/^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0) {
    const found = atob(text);
    octets = new Uint8Array(found.length);
    for (let at = 0; at < found.length; at++) octets[at] = found.charCodeAt(at);
    if (text !== "" && base64(octets.subarray(octets.length - (octets.length % 3 || 3))) !== text.slice(-4)) octets = null;
  }
  if (octets === null) throw new Problem(`${what}: expected padded standard base64 without stray bits`);
  return octets;
}

const joined = (...pieces) => concat(pieces);

/** One behind the other; a list, since there may be more of them than a function takes. */
function concat(pieces) {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

const same = (one, other) => one.length === other.length && one.every((octet, at) => octet === other[at]);

/** x as 8 octets, most significant first. */
function u64(number) {
  const octets = new Uint8Array(8);
  new DataView(octets.buffer).setBigUint64(0, BigInt(number));
  return octets;
}

const ROUNDS = new Uint32Array(64);
const START = new Uint32Array(8);
for (let number = 2, found = 0; found < 64; number++) {
  let prime = true;
  for (let by = 2; by * by <= number; by++) if (number % by === 0) prime = false;
  if (!prime) continue;
  if (found < 8) START[found] = (Math.sqrt(number) % 1) * 0x100000000;
  ROUNDS[found++] = (Math.cbrt(number) % 1) * 0x100000000;
}

/** SHA-256, FIPS 180-4, in plain script: it needs no secure context and no waiting. */
function sha256(octets) {
  const state = Uint32Array.from(START);
  const words = new Uint32Array(64);
  const whole = octets.length - (octets.length % 64);
  const tail = new Uint8Array(octets.length % 64 < 56 ? 64 : 128);
  tail.set(octets.subarray(whole));
  tail[octets.length % 64] = 0x80;
  const ends = new DataView(tail.buffer);
  ends.setUint32(tail.length - 8, Math.floor(octets.length / 0x20000000));
  ends.setUint32(tail.length - 4, octets.length << 3);
  for (let at = 0; at < whole; at += 64) compress(state, words, octets, at);
  for (let at = 0; at < tail.length; at += 64) compress(state, words, tail, at);
  const digest = new Uint8Array(32);
  const out = new DataView(digest.buffer);
  state.forEach((word, at) => out.setUint32(at * 4, word));
  return digest;
}

function compress(state, words, octets, at) {
  for (let i = 0; i < 16; i++, at += 4) {
    words[i] = (octets[at] << 24) | (octets[at + 1] << 16) | (octets[at + 2] << 8) | octets[at + 3];
  }
  for (let i = 16; i < 64; i++) {
    const x = words[i - 15], y = words[i - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    words[i] = (words[i - 16] + s0 + words[i - 7] + s1) | 0;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i] + words[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => { state[i] = (state[i] + word) | 0; });
}

function hmac(key, message) {
  const block = new Uint8Array(64);
  block.set(key.length > 64 ? sha256(key) : key);
  const inner = sha256(joined(block.map((octet) => octet ^ 0x36), message));
  return sha256(joined(block.map((octet) => octet ^ 0x5c), inner));
}

const LARGE = 1 << 16;

/** SHA-256 of many octets: by the browser where it offers that. */
async function digest(octets) {
  if (octets.length < LARGE || !globalThis.crypto?.subtle) return sha256(octets);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", octets));
}
