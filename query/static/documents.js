// Uploads and the state of every document.
import {
  byId, call, closePanels, element, notice, openPanel, request, takeBackNotice,
} from "/static/page.js";
import { open } from "/static/viewer.js";

const BUSY = new Set(["queued", "processing", "deleting"]);
const PAGE = 50;
const POLL_MS = 2000;
const CALM_MS = 10_000; // files also come through the bucket
let timer = null;
let wanted = PAGE;
let seen = "";
let maxBytes = Infinity;

export function startDocuments(me) {
  maxBytes = me.max_upload_bytes;
  const mayAdd = me.scopes.includes("ingest");
  byId("upload").hidden = !mayAdd;
  byId("document-list").dataset.mayDelete = mayAdd ? "yes" : "";
  byId("show-documents").addEventListener("click", () => {
    if (byId("documents").hidden) {
      openPanel("documents");
      refresh();
    } else closePanels();
  });
  byId("close-documents").addEventListener("click", closePanels);
  byId("upload").addEventListener("submit", (event) => event.preventDefault());
  byId("files").addEventListener("change", (event) => uploadAll([...event.target.files]));
  byId("more-documents").addEventListener("click", () => { wanted += PAGE; refresh(); });
  const drop = document.querySelector(".drop");
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    uploadAll([...event.dataTransfer.files]);
  });
  document.addEventListener("logged-out", () => clearTimeout(timer));
  refresh();
}

async function uploadAll(files) {
  const collection = byId("collection").value.trim() || "default";
  const rows = files.map((file) => ({ file, ...uploadRow(file) }));
  byId("files").value = "";
  for (const { file, row, state } of rows) await upload(file, collection, row, state);
}

function uploadRow(file) {
  const state = element("span", { className: "state", textContent: "waiting" });
  const row = element("li", {}, element("span", { className: "name", textContent: file.name }), state);
  byId("uploads").append(row);
  return { row, state };
}

async function upload(file, collection, row, state) {
  state.textContent = "uploading";
  try {
    if (file.size > maxBytes) throw new Error(`larger than ${Math.floor(maxBytes / 2 ** 20)} MiB`);
    const query = new URLSearchParams({ collection, filename: file.name });
    const response = await request("POST", `/v1/documents?${query}`, {
      body: file, headers: { "content-type": file.type || "application/octet-stream" },
    });
    state.textContent = (await response.json()).is_new ? "accepted" : "unchanged";
    setTimeout(() => row.remove(), 4000);
  } catch (error) {
    state.classList.add("bad");
    state.textContent = error.message;
    row.append(element("button", {
      type: "button", textContent: "×", "aria-label": `Forget ${file.name}`,
      onclick: () => row.remove(),
    }));
  }
  refresh();
}

export async function refresh() {
  clearTimeout(timer);
  let delay = CALM_MS;
  try {
    const { documents, hasMore } = await load();
    show(documents, hasMore);
    const busy = documents.filter((found) => BUSY.has(found.status)).length;
    const all = `${documents.length}${hasMore ? "+" : ""} document${documents.length === 1 ? "" : "s"}`;
    byId("queue").textContent = busy ? `${busy} of ${all} in work` : all;
    if (busy) {
      delay = POLL_MS;
      await warnWithoutWorker();
    } else takeBackNotice("worker");
    takeBackNotice("listing");
  } catch (error) {
    if (error.status === 401) return;
    notice(error.message, "listing");
  }
  clearTimeout(timer);
  timer = setTimeout(refresh, delay);
}

async function load() {
  const documents = [];
  let cursor = "";
  do {
    const query = new URLSearchParams({ limit: PAGE, ...(cursor && { cursor }) });
    const page = await call("GET", `/v1/documents?${query}`);
    documents.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor && documents.length < wanted);
  return { documents, hasMore: Boolean(cursor) };
}

// Only what changed is drawn again, and the keyboard's place in the list is kept.
function show(documents, hasMore) {
  byId("more-documents").hidden = !hasMore;
  const now = JSON.stringify(documents);
  if (now === seen) return;
  seen = now;
  const focused = document.activeElement?.dataset?.place;
  byId("document-list").replaceChildren(...documents.map(row));
  if (focused) document.querySelector(`[data-place="${CSS.escape(focused)}"]`)?.focus();
}

async function warnWithoutWorker() {
  const state = await call("GET", "/v1/ops/ingest").catch(() => null); // needs scope ops
  if (!state) return;
  if (state.processes.some((process) => process.role === "worker")) takeBackNotice("worker");
  else notice("No ingest worker is running: documents wait.", "worker");
}

function row(found) {
  const kind = found.status === "ready" ? "good" : BUSY.has(found.status) ? "" : "bad";
  const pages = found.pages_total ? `${found.pages_done}/${found.pages_total} pages` : "";
  const details = [found.collection, pages, found.problem?.message, found.problem?.hint];
  const name = element("span", { className: "name" },
    found.active_version_seq ? titleButton(found) : found.title,
    element("small", { textContent: details.filter(Boolean).join(" · ") }));
  const state = element("span", {
    className: `state ${kind}`, textContent: found.status.replaceAll("_", " "),
  });
  const item = element("li", {}, name, state);
  if (byId("document-list").dataset.mayDelete) item.append(deleteButton(found));
  return item;
}

function deleteButton(found) {
  return element("button", {
    type: "button", textContent: "Delete", "aria-label": `Delete ${found.title}`,
    "data-place": `delete ${found.document_id}`,
    onclick: () => removeDocument(found),
  });
}

function titleButton(found) {
  return element("button", {
    type: "button",
    className: "link",
    textContent: found.title,
    "data-place": `open ${found.document_id}`,
    onclick: () => open({
      documentId: found.document_id, version: null, title: found.title, page: 1,
      locations: [], quote: null,
    }),
  });
}

async function removeDocument(found) {
  if (!window.confirm(`Delete “${found.title}” for good?`)) return;
  await call("DELETE", `/v1/documents/${found.document_id}`)
    .catch((error) => notice(error.message));
  await refresh();
  byId("documents").focus();
}
