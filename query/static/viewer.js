// The page picture beside the answer, with the quote marked by rectangles.
import { byId, call, closePanels, element, notice, openPanel } from "/static/page.js";

const WIDTH = 1200;
let shown = null; // { documentId, version, title, page, numPages, locations, quote }

export function startViewer() {
  byId("close-viewer").addEventListener("click", closePanels);
  byId("previous").addEventListener("click", () => turnTo(shown.page - 1));
  byId("next").addEventListener("click", () => turnTo(shown.page + 1));
  byId("viewer").addEventListener("keydown", (event) => {
    if (event.key === "PageUp") turnTo(shown.page - 1);
    else if (event.key === "PageDown") turnTo(shown.page + 1);
    else return;
    event.preventDefault();
  });
  byId("picture").addEventListener("error", () => {
    byId("picture").alt = "The picture of this page could not be made.";
  });
}

// A citation may have several quotes; the first one is what its chip opens.
export async function openCitation(answer, citation, quoted = citation.sources[0]) {
  const source = answer.sources.find((candidate) => candidate.id === quoted.source_id);
  if (!source || !quoted.locations.length) {
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
  const [, documentId] = location.pathname.match(/^\/view\/([^/]+)$/) ?? [];
  if (!documentId) return;
  const wanted = new URLSearchParams(location.search);
  if (wanted.get("answer") && wanted.get("cite")) {
    // Somebody else's answer cannot be loaded; its page can still be shown.
    const answer = await call("GET", `/v1/answers/${encodeURIComponent(wanted.get("answer"))}`)
      .catch(() => null);
    const citation = answer?.citations.find((candidate) => candidate.id === wanted.get("cite"));
    if (citation) {
      await openCitation(answer, citation);
      return;
    }
  }
  const found = await call("GET", `/v1/documents/${documentId}`);
  await open({
    documentId,
    version: wanted.get("v"),
    title: found.title,
    page: Number(wanted.get("page")) || 1,
    locations: [],
    quote: null,
  });
}

export async function open(what) {
  shown = { ...what, numPages: what.page };
  openPanel("viewer");
  byId("viewer-title").textContent = shown.title;
  byId("quote").hidden = !shown.quote;
  byId("quote").textContent = shown.quote ?? "";
  await show();
}

async function turnTo(page) {
  if (page < 1 || page > shown.numPages) return;
  shown = { ...shown, page };
  await show();
}

async function show() {
  const mine = shown;
  const base = `/v1/documents/${mine.documentId}/pages/${mine.page}`;
  const version = mine.version ? `v=${encodeURIComponent(mine.version)}` : "";
  const picture = byId("picture");
  picture.removeAttribute("src");
  byId("marks").replaceChildren();
  byId("original").href = `/v1/documents/${mine.documentId}/file?${version}#page=${mine.page}`;
  try {
    const facts = await call("GET", `${base}?${version}`);
    if (mine !== shown) return; // turned meanwhile
    mine.numPages = facts.num_pages;
    const label = facts.label && facts.label !== String(facts.page) ? ` (“${facts.label}”)` : "";
    byId("viewer-page").textContent = `page ${facts.page}${label} of ${facts.num_pages}`;
    byId("previous").disabled = mine.page <= 1;
    byId("next").disabled = mine.page >= mine.numPages;
    showWhereItGoesOn(mine);
    picture.alt = `Page ${facts.page} of ${mine.title}`;
    picture.width = Math.round(facts.width); // the picture's shape is known before it comes
    picture.height = Math.round(facts.height);
    picture.src = `${base}/image?width=${WIDTH}&${version}`;
    await mark(mine, base, version);
  } catch (error) {
    if (mine === shown) notice(error.message);
  }
}

function showWhereItGoesOn(mine) {
  const others = [...new Set(mine.locations.map((place) => place.page))]
    .filter((page) => page !== mine.page);
  byId("goes-on").hidden = !others.length;
  byId("goes-on").replaceChildren("The quote also stands on ", ...others.map((page) => element(
    "button", { type: "button", textContent: `page ${page}`, onclick: () => turnTo(page) },
  )));
}

async function mark(mine, base, version) {
  const here = mine.locations.filter((place) => place.page === mine.page);
  // The rectangles of whole lines at once; those of exactly the quoted words once they are known.
  const groups = here.map((place) => {
    const group = element("div");
    draw(group, place.rects);
    byId("marks").append(group);
    return group;
  });
  byId("marks").querySelector(".mark")?.scrollIntoView({ block: "center" });
  await Promise.all(here.map(async (place, index) => {
    const exact = await call("GET", `${base}/rects?start=${place.start}&end=${place.end}&${version}`)
      .catch(() => null);
    if (mine === shown && exact?.rects.length) draw(groups[index], exact.rects);
  }));
}

function draw(group, rects) {
  group.replaceChildren(...rects.map(([x0, y0, x1, y1]) => {
    const box = element("div", { className: "mark" });
    box.style.left = `${x0 * 100}%`;
    box.style.top = `${y0 * 100}%`;
    box.style.width = `${(x1 - x0) * 100}%`;
    box.style.height = `${(y1 - y0) * 100}%`;
    return box;
  }));
}
