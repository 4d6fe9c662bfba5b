// The octets of a blob on the page: set in lines as JSON where they are that, and exactly as they are, holes shown as holes.

const HOLE_OPENS = "\ue000", HOLE_ENDS = "\ue001";

/** The text of a blob with each hole as one mark; marks that the data itself holds are made harmless. */
function markedText(record, role) {
  return record.parts[role].map((part) => (part.content
    ? new TextDecoder().decode(part.content.subarray(0, MOST_TEXT)).replaceAll(HOLE_OPENS, "\ufffd").replaceAll(HOLE_ENDS, "\ufffd")
    : `${HOLE_OPENS}${part.length}${HOLE_ENDS}`)).join("");
}

function withHoles(text) {
  return text.split(HOLE_OPENS).flatMap((piece, at) => {
    if (at === 0) return visible(piece, MOST_TEXT);
    const [length, rest] = piece.split(HOLE_ENDS);
    return [make("span", { class: "hole" }, `${length} octets left out`), ...visible(rest ?? "", MOST_TEXT)];
  });
}

/** One blob: pretty JSON if it is that, and the exact octets on demand. */
function octetsOf(record, role) {
  const parts = record.parts[role];
  if (!parts.length) return make("p", { class: "soft" }, "no octets");
  const text = markedText(record, role), set = pretty(text);
  const label = `${role} of event ${record.n}`;
  const cut = parts.some((part) => part.content && part.content.length > MOST_TEXT) ? make("p", { class: "soft" }, `Only the first ${MOST_TEXT} octets of a part are shown.`) : "";
  const shownText = make("pre", { class: "data", dir: "ltr", tabindex: "0", role: "group", "aria-label": label }, ...withHoles(set ?? text));
  const said = set === null ? "As text" : "JSON, set in lines; no token is changed";
  return make("div", {}, make("p", { class: "soft" }, `${said}. Blob `, code(record.blobs[role].id), `, ${counted(record.blobs[role].size, "octet")}.`), shownText, cut,
    folded("Exact octets", () => parts.map((part, at) => (part.content ? block(dump(part.content), `part ${at} of ${label}, hexadecimal`) : make("p", {}, make("span", { class: "hole" }, `part ${at}: ${part.length} octets left out`), " commitment ", code(hex(part.hash)))))));
}

function dump(octets) {
  const lines = [];
  for (let at = 0; at < Math.min(octets.length, 16384); at += 16) {
    const row = octets.subarray(at, at + 16);
    const pairs = Array.from(row, (octet) => DIGITS[octet]).join(" ").padEnd(47);
    lines.push(`${at.toString(16).padStart(6, "0")}  ${pairs}  ${Array.from(row, (octet) => (octet > 31 && octet < 127 ? String.fromCharCode(octet) : ".")).join("")}`);
  }
  if (octets.length > 16384) lines.push(`… ${octets.length - 16384} more octets are in the bundle`);
  return lines.join("\n");
}

const json = (value, label) => block(pretty(canonical(value)), label);
