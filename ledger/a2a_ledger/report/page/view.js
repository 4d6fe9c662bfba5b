// The report as elements: verdict, claims, contract, findings, cards, timeline, keys, what is left out, what is not claimed.

const TONES = { VALID: "good", INVALID: "bad", "NOT PROVEN": "open" };

/** The verdict in plain words: {tone, title, text: nodes}. */
function headline(report) {
  const of = (status) => report.claims.filter((claim) => claim.status === status);
  if (report.verdict === "invalid") {
    const bad = of("INVALID");
    return { tone: "bad", title: report.bundle ? "Do not rely on this bundle: something in it is false or was changed" : "This file cannot be read as a bundle",
      text: [make("ul", {}, ...bad.map((claim) => make("li", {}, make("strong", {}, `${TABLES.titles[claim.claim]}: `), data(claim.detail, 800))))] };
  }
  if (!canVerify) return { tone: "open", title: "Hashes fit; signatures not checked", text: [make("p", {}, "This browser cannot check Ed25519 signatures. Every hash and every proof was checked in plain script; who signed was not. Use a newer browser, or ", code("a2a-ledger verify"), ".")] };
  if (report.verdict === "self-consistent only") return { tone: "open", title: "It fits together, and nothing here says who made it", text: [make("p", {}, "You named no key. Keys inside a bundle prove nothing about who made it: anybody can make a bundle that fits. Enter below what you have from the log's owner.")] };
  const missing = REQUIRED.filter((letter) => letter !== "R" && report.claims.find(({ claim }) => claim === letter).status !== "VALID");
  if (missing.length) return { tone: "open", title: "Not proven under what you trust", text: [make("p", {}, "Nothing in it is false, and this is not shown: ", missing.map((letter) => TABLES.titles[letter]).join("; "), ".")] };
  return { tone: "good", title: "Everything that this page checks holds, under the key that you named",
    text: [make("p", {}, "The log that you trust recorded these events, and its exporter says that none of the task is missing. This page does not decide and judge again; for that, and for the verdict ", make("q", {}, "verified"), ": ", data(report.claims.find(({ claim }) => claim === "R").settle, 800), ".")] };
}

function reportSections(report) {
  if (!report.bundle) return [claimsSection(report)];
  const parts = [claimsSection(report)];
  if (report.shown) {
    const { shown } = report;
    parts.push(contractSection(shown), findingsSection(report), cardSection(shown), timelineSection(report), keysSection(report), withheldSection(shown));
  }
  return [...parts, limitsSection(report)];
}

function claimsSection(report) {
  const rows = report.claims.map((claim) => [claim.claim, TABLES.titles[claim.claim], tag(claim.status, TONES[claim.status]),
    make("div", {}, data(claim.detail, 1000), claim.settle ? make("span", { class: "settle" }, "What would settle it: ", data(claim.settle, 600)) : "")]);
  const made = table("Each claim by itself. NOT PROVEN is no fault: it says that this bundle, or what you trust, does not show it.", ["Claim", "Says", "Status", "Why"], rows, { class: "stack claims", id: "claims" });
  return section("claims-part", "Claim by claim", made, make("p", { class: "soft" }, "Verdict as docs/format.md section 12 has it: ", make("strong", { id: "machine-verdict" }, report.verdict), `; sides: ${report.sides}, the account of one side alone.`));
}

function contractSection(shown) {
  const capture = [...shown.records.values()].find(({ type }) => type === "contract.captured.v1" || type === "contract.reconstructed.v1");
  if (!capture) return section("contract", "The frozen contract", make("p", {}, "The bundle shows no contract that was frozen for this task."));
  const { data: d } = capture, contract = contractIn(capture), at = isObject(d.interface) ? d.interface : {};
  const captured = capture.type === "contract.captured.v1";
  return section("contract", "The frozen contract",
    make("p", {}, captured ? "What the peer's card promised when the task was sent; later messages are held against this." : "Made again from imported material: it was not captured at the time."),
    list([
      ["Frozen at", [place(capture.n), data(` ${capture.at}`)]],
      ["Peer", d.peer_url ? data(d.peer_url) : null],
      ["Interface", data(`${at.binding}, version ${at.version || "not stated"}, ${at.url}${at.tenant ? `, tenant ${at.tenant}` : ""}`)],
      ["Schemes offered", contract ? data(schemesOf(contract).join(", ") || "none: no credential is asked for") : "the contract's octets are not all shown"],
      ["Credential offered", data(d.credential.join(", ") || (d.credential_visible ? "none" : "none that could be seen"))],
      ["Extensions", data(d.extensions.join(", ") || "none")],
      ["Contract hash", [code(d.contract_hash || "none"), data(` form ${d.form}`)]],
    ]), contract ? folded("The contract in its normal form", () => json(contract, "the frozen contract")) : "");
}

function findingsSection({ shown, checks }) {
  const findings = [...shown.records.values()].filter(({ type }) => type === "violation.detected.v1");
  const left = whoLeft(shown);
  if (!left) return section("findings", "Findings", make("p", {}, "The bundle shows no finding: no rule of the recorder named anybody who left the contract."));
  const trigger = left.trigger ? [place(left.trigger.n), data(` at ${left.trigger.at}`)] : [`event ${left.first.data.trigger_index}, which is not shown`];
  const head = make("p", {}, "Who left the contract: ", make("strong", {}, data(left.party)), ", since ", ...trigger, data(`, ${left.first.data.certainty}, by rule ${left.first.data.rule}.`));
  return section("findings", counted(findings.length, "finding"), head, make("p", { class: "soft" }, "A finding says that somebody left the frozen contract. It never says that A2A was broken."),
    ...findings.map((record) => findingCard(record, checks.get(record.n))));
}

function findingCard(record, check) {
  const { data: d } = record;
  const tone = check?.good === true ? "good" : check?.good === false ? "bad" : "open";
  const status = { good: "signature and statement hold", bad: "does not hold", open: "not checked" }[tone];
  return make("article", { class: "finding" }, make("h3", {}, data(d.rule), " ", place(record.n)),
    list([
      ["About", data(PARTY[d.about] || d.about)], ["Certainty", data(d.certainty)], ["Class", data(d.rule_class)], ["Seen", data(d.basis === "live" ? "live, on the wire" : d.basis)],
      ["Completed by", place(d.trigger_index)], ["Shown by", d.evidence_index.flatMap((n, at) => [at ? ", " : "", place(n)])],
      ["Signed statement", [tag(status, tone), " ", check ? data(check.text) : "", check?.signer ? [" by ", code(keyName(check.signer))] : ""].flat()],
    ]),
    make("h3", {}, "What it does not establish"), make("ul", {}, ...d.not_established.map((line) => make("li", {}, data(line)))),
    folded("What was observed", () => json(d.observed, `observed, finding ${record.n}`)),
    check?.payload ? folded("The signed statement", () => block(pretty(new TextDecoder().decode(check.payload)) ?? "", `statement of finding ${record.n}`)) : "");
}

function timelineSection({ shown }) {
  const records = [...shown.records.values()].filter(({ stream }) => stream !== "ledger").sort((a, b) => a.n - b.n);
  let day = "";
  const items = [];
  for (const record of records) {
    if (record.at.slice(0, 10) !== day) {
      day = record.at.slice(0, 10);
      items.push(make("li", { class: "day" }, `${day} (UTC, by the recorder's own clock)`));
    }
    items.push(timelineItem(record));
  }
  return section("timeline", "What happened, in the log's order", make("ol", { class: "timeline" }, ...items));
}

function timelineItem(record) {
  const line = told(record), said = saidIn(record);
  return make("li", { class: line.tone, id: `event-${record.n}` },
    make("div", { class: "head" }, make("span", { class: "at" }, record.at.slice(11, 23)), make("span", { class: "kind" }, data(line.kind, 80)), make("a", { class: "place", href: `#event-${record.n}` }, `#${record.n}`)),
    make("div", {}, ...line.words), said ? make("p", { class: "said" }, "“", data(said), "”") : "", record.erasedBy ? make("p", { class: "soft" }, "Its content was erased: ", place(record.erasedBy.n)) : "", folded("Details and octets", () => eventDetails(record)));
}

function eventDetails(record) {
  const headers = Object.keys(record.parts).filter((role) => role.startsWith("header.")).sort();
  const others = Object.keys(record.parts).filter((role) => !role.startsWith("header.")).sort();
  return [
    list([["Stream", data(`${record.stream}, version ${record.ver}`)], ["Recorded", data(record.at)], ["How", data(record.how)], ["Record commitment", code(record.c)]]),
    ...others.flatMap((role) => [make("h3", {}, data(role)), octetsOf(record, role)]),
    headers.length ? [make("h3", {}, "Kept headers"), make("pre", { class: "data", tabindex: "0", role: "group", "aria-label": `headers of event ${record.n}` }, ...headers.flatMap((role) => [...withHoles(markedText(record, role)), "\n"]))] : [],
    folded("The whole record", () => json(JSON.parse(textOf(record.raw, "record")), `record ${record.n}`)),
  ].flat();
}

function keysSection({ shown, keys, policy, bundle }) {
  const yours = new Set(policy ? [...policy.logs, ...policy.witnesses.values(), ...policy.others.map(({ key }) => key)].map((key) => key.vkey) : []);
  const known = (vkey) => (yours.has(vkey) ? tag("named by you", "good") : tag("unknown to you", "open"));
  const rows = keys.terms.map(({ role, key, added, retired, revoked }) => [data(role), code(key.vkey), [`from size ${added + 1}`, retired === null ? "" : ` to ${retired}`, revoked === null ? "" : `; revoked behind ${revoked}`].join(""), known(key.vkey)]);
  const signatures = parseNote(bundle.read("data/log/checkpoint")).signatures.map((one) => {
    const key = keyName(one), mine = [...yours].some((vkey) => vkey.startsWith(`${key}+`));
    return [code(key), mine ? tag("named by you", "good") : tag("unknown to you", "open")];
  });
  return section("keys", "Keys", make("p", {}, "The log names these keys itself. What you did not name gives no trust by being here."),
    rows.length ? table("Keys that the log's events name", ["Role", "Key", "Speaks for heads", "You"], rows) : make("p", {}, "No key event is shown."),
    table("Signatures under the checkpoint", ["Signer", "You"], signatures));
}

function withheldSection(shown) {
  const erased = [...shown.records.values()].filter(({ type }) => type === "content.erased.v1");
  const rows = shown.gaps.slice(0, 500).map(({ index, role, part, size }) => {
    const later = shown.unread.some((line) => line.startsWith(`${role} of event ${index} `));
    return [place(index), data(role), String(part), counted(size, "octet"), shown.records.get(index).erasedBy ? tag("erased since it was recorded", "open") : later ? tag("left out since it was recorded", "open") : "left out when it was recorded"];
  });
  return section("withheld", "What is withheld or erased",
    rows.length ? table(`${counted(shown.gaps.length, "part")} left out; length and commitment are known, the content is not`, ["Event", "What", "Part", "Size", "When"], rows) : make("p", {}, "Nothing is left out of what is shown."),
    ...erased.map((record) => make("p", {}, "Erased: ", ...told(record).words, " ", place(record.n))));
}

function limitsSection({ scope, claimed }) {
  const later = isCount(claimed?.later_events) ? `The exporter states ${counted(claimed.later_events, "later event")} of it behind the checkpoint.` : "";
  return section("limits", "What is not claimed", make("ul", {}, ...(scope ? notClaimed(scope) : TABLES.not_claimed).map((line) => make("li", {}, line)), make("li", {}, "that the recorder decided and judged rightly: this page does not judge again")),
    later ? make("p", {}, later) : "", scope ? make("p", { class: "soft" }, `About ${scope.kind} `, data(scope.value), scope.packed ? `: ${counted(scope.tasks.length, "task")}` : "") : "");
}
