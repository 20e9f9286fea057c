// The page picture beside the answer, with the quote marked by rectangles.
import { byId, call, element, notice } from "/static/page.js";

const WIDTH = 1200;
let shown = null; // { documentId, version, title, page, numPages, locations, quote }

export function startViewer() {
  byId("close-viewer").addEventListener("click", () => { byId("viewer").hidden = true; });
  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  byId("picture").addEventListener("error", () => {
    byId("picture").alt = "The picture of this page could not be made.";
  });
}

export async function openCitation(answer, citation) {
  const quoted = citation.sources[0];
  const source = answer.sources.find((candidate) => candidate.id === quoted.source_id);
  if (quoted.deleted || !quoted.locations.length) {
    notice("The document of this citation was deleted.");
    return;
  }
  await open({
    documentId: source.document_id,
    version: source.version,
    title: source.title,
    page: quoted.locations[0].page,
    locations: quoted.locations,
    quote: quoted.quote,
  });
}

// /view/{document}?v=...&page=...&answer=...&cite=c1
export async function openFromAddress() {
  const match = location.pathname.match(/^\/view\/([^/]+)$/);
  if (!match) return;
  const wanted = new URLSearchParams(location.search);
  if (wanted.get("answer") && wanted.get("cite")) {
    const answer = await call("GET", `/v1/answers/${encodeURIComponent(wanted.get("answer"))}`);
    const citation = answer.citations.find((candidate) => candidate.id === wanted.get("cite"));
    if (citation) {
      await openCitation(answer, citation);
      return;
    }
  }
  const document_ = await call("GET", `/v1/documents/${match[1]}`);
  await open({
    documentId: match[1],
    version: wanted.get("v") ?? document_.version,
    title: document_.title,
    page: Number(wanted.get("page") ?? 1),
    locations: [],
    quote: null,
  });
}

export async function open(what) {
  shown = what;
  byId("documents").hidden = true;
  byId("viewer").hidden = false;
  byId("quote").hidden = !what.quote;
  byId("quote").textContent = what.quote ?? "";
  await show();
}

async function turn(step) {
  const page = shown.page + step;
  if (page < 1 || page > shown.numPages) return;
  shown.page = page;
  await show();
}

async function show() {
  const base = `/v1/documents/${shown.documentId}/pages/${shown.page}`;
  const version = shown.version ? `v=${encodeURIComponent(shown.version)}` : "";
  const mine = shown;
  try {
    const facts = await call("GET", `${base}?${version}`);
    if (mine !== shown) return;
    shown.numPages = facts.num_pages;
    byId("viewer-title").textContent = shown.title;
    const label = facts.label && facts.label !== String(facts.page) ? ` (“${facts.label}”)` : "";
    byId("viewer-page").textContent = `page ${facts.page}${label} of ${facts.num_pages}`;
    byId("original").href = `/v1/documents/${shown.documentId}/file?${version}#page=${shown.page}`;
    byId("previous").disabled = shown.page <= 1;
    byId("next").disabled = shown.page >= shown.numPages;
    const picture = byId("picture");
    picture.alt = `Page ${facts.page} of ${shown.title}`;
    picture.width = Math.round(facts.width);
    picture.height = Math.round(facts.height);
    picture.src = `${base}/image?width=${WIDTH}&${version}`;
    await mark(base, version);
  } catch (error) {
    notice(error.message);
  }
}

async function mark(base, version) {
  const marks = byId("marks");
  marks.replaceChildren();
  const here = shown.locations.filter((place) => place.page === shown.page);
  for (const place of here) {
    draw(marks, place.rects);
    // Line rectangles at once; those of exactly the quoted words as soon as they are known.
    const exact = await call("GET", `${base}/rects?start=${place.start}&end=${place.end}&${version}`)
      .catch(() => null);
    if (exact?.rects.length) {
      marks.replaceChildren();
      draw(marks, exact.rects);
    }
  }
  marks.firstElementChild?.scrollIntoView({ block: "center" });
}

function draw(marks, rects) {
  for (const [x0, y0, x1, y1] of rects) {
    const box = element("div", { className: "mark" });
    box.style.left = `${x0 * 100}%`;
    box.style.top = `${y0 * 100}%`;
    box.style.width = `${(x1 - x0) * 100}%`;
    box.style.height = `${(y1 - y0) * 100}%`;
    marks.append(box);
  }
}
