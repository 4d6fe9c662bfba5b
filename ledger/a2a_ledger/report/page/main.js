// The page itself: a bundle comes in by the page, by the file input or by a drop; trust comes in by the reader.

const by = (id) => document.getElementById(id);
const page = { octets: null, name: "", policy: null, earlier: [], run: 0 };

async function check() {
  const run = ++page.run;
  by("live").textContent = "Checking the bundle.";
  let report;
  try {
    report = await verify(page.octets, page.policy, page.earlier);
  } catch (problem) {
    if (!(problem instanceof ReaderProblem)) throw problem;
    if (run === page.run) complain(problem.message);
    return;
  }
  if (run === page.run) show(report);
}

function show(report) {
  const { tone, title, text } = headline(report);
  by("verdict").className = `verdict ${tone}`;
  by("verdict-title").textContent = title;
  by("verdict-text").replaceChildren(...text, make("p", { id: "reach" }, `${reach(report)}.`), make("p", { class: "soft" }, "Bundle: ", data(page.name), `, ${counted(page.octets.length, "octet")}, SHA-256 `, code(page.hash)));
  by("about").replaceChildren(...visible(report.about, 800));
  let parts;
  try {
    parts = reportSections(report);
  } catch (problem) {
    parts = [claimsSection(report), make("p", { class: "problem" }, `The story cannot be shown, which is a defect of this page: ${problem}`)];
  }
  const links = parts.filter((part) => part.id).map((part) => make("li", {}, make("a", { href: `#${part.id}` }, part.querySelector("h2").textContent)));
  by("report").replaceChildren(make("nav", { class: "card", "aria-label": "Parts of the report" }, make("ul", { class: "contents" }, ...links)), ...parts);
  for (const id of ["verdict", "trust", "report"]) by(id).hidden = false;
  by("live").textContent = `Verdict: ${title}.`;
  document.documentElement.dataset.state = "done";
}

function complain(message) {
  by("trust-problem").replaceChildren(...visible(message));
  by("live").textContent = "";
  by("policy").focus();
}

async function open(octets, name) {
  document.documentElement.dataset.state = "checking";
  Object.assign(page, { octets, name, hash: hex(await digest(octets)) });
  await check();
}

async function openFile(file) {
  if (!file) return;
  let octets = null, problem = `${file.size} octets; a bundle may have ${LIMITS.total}`;
  if (file.size <= LIMITS.total) {
    try {
      octets = new Uint8Array(await file.arrayBuffer());
    } catch {
      problem = "the file cannot be read";
    }
  }
  if (octets !== null) await open(octets, file.name);
  else {
    page.run++;
    Object.assign(page, { octets: new Uint8Array(0), name: file.name, hash: "not read" });
    show(unreadable(problem));
  }
  by("verdict-title").focus();
}

function takeTrust() {
  by("trust-problem").replaceChildren();
  try {
    page.policy = parseTrust(by("policy").value);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    return complain(`What you entered cannot be used: ${problem.message}`);
  }
  return check().then(() => by("verdict-title").focus());
}

function wire() {
  by("file").addEventListener("change", (event) => openFile(event.target.files[0]));
  const drop = by("drop");
  for (const [name, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", over);
      if (name === "drop") openFile(event.dataTransfer.files[0]);
    });
  }
  by("trust-form").addEventListener("submit", (event) => { event.preventDefault(); takeTrust(); });
  by("trust-form").addEventListener("reset", () => { page.earlier = []; setTimeout(takeTrust); });
  by("policy-file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (!file || file.size > MIB) return complain("a policy may have 1 MiB");
    by("policy").value = await file.text();
    return takeTrust();
  });
  by("earlier-file").addEventListener("change", async (event) => {
    const files = [...event.target.files].filter((file) => file.size <= MIB);
    page.earlier = await Promise.all(files.map(async (file) => new Uint8Array(await file.arrayBuffer())));
    takeTrust();
  });
  addEventListener("hashchange", unfold);
  addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("#suggested")) one.open = false; });
}

/** A link to an event puts the keyboard there too. */
function unfold() {
  const there = location.hash.length > 1 && by(location.hash.slice(1));
  if (there && !there.hasAttribute("tabindex")) there.setAttribute("tabindex", "-1");
  if (there) there.focus({ preventScroll: true });
}

/** What came with the page: a bundle, its name, and what the page's maker suggests to trust, which gives none. */
async function fill() {
  const filled = JSON.parse(by("filled").textContent);
  if (filled === null) return;
  const octets = unbase64(filled.bundle, "the bundle in this page");
  by("origin-notice").hidden = false;
  by("report").before(by("open")); // the reader is here for this bundle first
  if (filled.suggested) {
    by("suggested").hidden = false;
    by("suggested-text").replaceChildren(...visible(filled.suggested, MOST_TEXT));
  }
  by("save").addEventListener("click", () => {
    const link = make("a", { href: URL.createObjectURL(new Blob([octets], { type: "application/zip" })), download: "bundle.zip" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  await open(octets, filled.name);
}

wire();
fill();
