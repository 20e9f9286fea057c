// Uploads and the state of every document.
import { byId, call, element, notice, request } from "/static/page.js";
import { open } from "/static/viewer.js";

const BUSY = new Set(["queued", "processing", "deleting"]);
const GOOD = new Set(["ready"]);
const POLL_MS = 2000;
let timer = null;
let limit = 50;

export function startDocuments() {
  const panel = byId("documents");
  const toggle = byId("show-documents");
  const setOpen = (isOpen) => {
    panel.hidden = !isOpen;
    toggle.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) {
      byId("viewer").hidden = true;
      refresh();
    }
  };
  toggle.addEventListener("click", () => setOpen(panel.hidden));
  byId("close-documents").addEventListener("click", () => setOpen(false));
  byId("files").addEventListener("change", (event) => uploadAll([...event.target.files]));
  byId("more-documents").addEventListener("click", () => { limit = Math.min(200, limit + 50); refresh(); });
  const drop = document.querySelector(".drop");
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    uploadAll([...event.dataTransfer.files]);
  });
  refresh();
}

async function uploadAll(files) {
  for (const file of files) await upload(file);
  byId("files").value = "";
}

async function upload(file) {
  const state = element("span", { className: "state", textContent: "uploading" });
  const row = element("li", {}, element("span", { className: "name", textContent: file.name }), state);
  byId("uploads").append(row);
  const query = new URLSearchParams({
    collection: byId("collection").value.trim() || "default", filename: file.name,
  });
  try {
    const response = await request("POST", `/v1/documents?${query}`, {
      body: file, headers: { "content-type": file.type || "application/octet-stream" },
    });
    const accepted = await response.json();
    state.textContent = accepted.is_new ? "accepted" : "unchanged";
    setTimeout(() => row.remove(), 4000);
  } catch (error) {
    state.classList.add("bad");
    state.textContent = error.message;
  }
  refresh();
}

export async function refresh() {
  clearTimeout(timer);
  try {
    const { data, next_cursor } = await call("GET", `/v1/documents?limit=${limit}`);
    byId("document-list").replaceChildren(...data.map(row));
    byId("more-documents").hidden = !next_cursor || limit >= 200;
    const busy = data.filter((found) => BUSY.has(found.status)).length;
    byId("queue").textContent = busy
      ? `${busy} of ${data.length} documents are being ingested`
      : `${data.length}${next_cursor ? "+" : ""} documents`;
    if (busy) await warnWithoutWorker();
    else if (byId("notice").dataset.kind === "worker") notice("");
    // Poll while something is active; look rarely otherwise (files also come through the bucket).
    timer = setTimeout(refresh, busy ? POLL_MS : POLL_MS * 5);
  } catch (error) {
    notice(error.message);
    timer = setTimeout(refresh, POLL_MS * 5);
  }
}

async function warnWithoutWorker() {
  const state = await call("GET", "/v1/ops/ingest").catch(() => null);
  if (!state) return;
  const hasWorker = state.processes.some((process) => process.role === "worker");
  byId("notice").dataset.kind = hasWorker ? "" : "worker";
  notice(hasWorker ? "" : "No ingest worker is running: documents wait.");
}

function row(found) {
  const kind = GOOD.has(found.status) ? "good" : BUSY.has(found.status) ? "" : "bad";
  const pages = found.pages_total ? `${found.pages_done}/${found.pages_total} pages` : "";
  const details = [found.collection, pages, found.problem?.message].filter(Boolean).join(" · ");
  const name = element("span", { className: "name" },
    found.active_version_seq ? titleButton(found) : found.title,
    element("small", { textContent: details }));
  const remove = element("button", {
    type: "button", textContent: "Delete", "aria-label": `Delete ${found.title}`,
    onclick: () => removeDocument(found),
  });
  const state = element("span", {
    className: `state ${kind}`, textContent: found.status.replaceAll("_", " "),
  });
  return element("li", {}, name, state, remove);
}

function titleButton(found) {
  return element("button", {
    type: "button",
    textContent: found.title,
    onclick: () => open({
      documentId: found.document_id, version: null, title: found.title, page: 1,
      locations: [], quote: null,
    }),
  });
}

async function removeDocument(found) {
  if (!window.confirm(`Delete “${found.title}” for good?`)) return;
  try {
    await call("DELETE", `/v1/documents/${found.document_id}`);
  } catch (error) {
    notice(error.message);
  }
  refresh();
}
