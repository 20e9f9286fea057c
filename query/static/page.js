// What every part of the page needs: elements, requests, notices, panels.

export const byId = (id) => document.getElementById(id);

// Text is only ever set as text, never as HTML.
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export class RequestFailed extends Error {
  constructor(status, problem) {
    const text = problem.detail || `the server answered ${status}`;
    super(problem.hint ? `${text} (${problem.hint})` : text);
    this.status = status;
    this.requestId = problem.request_id;
  }
}

// A request with the session cookie; the header is the consent that changing requests need.
export async function request(method, path, options = {}) {
  const headers = { "x-pincite-csrf": "1", ...options.headers };
  const response = await fetch(path, { ...options, method, headers, credentials: "same-origin" })
    .catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new RequestFailed(0, { detail: "The server does not answer." });
    });
  if (response.ok) return response;
  if (response.status === 401) document.dispatchEvent(new Event("logged-out"));
  throw new RequestFailed(response.status, await response.json().catch(() => ({})));
}

export async function call(method, path) {
  const response = await request(method, path);
  return response.status === 204 ? null : response.json();
}

// One notice at a time; `kind` lets whoever showed it take it back.
export function notice(text, kind = "") {
  const place = byId("notice");
  place.textContent = text;
  place.dataset.kind = kind;
  place.hidden = !text;
}

export function takeBackNotice(kind) {
  if (byId("notice").dataset.kind === kind) notice("");
}

// The two panels beside the chat: one is open at a time, and closing gives the focus back.
let opener = null;

export function openPanel(id) {
  for (const other of ["viewer", "documents"]) byId(other).hidden = other !== id;
  byId("show-documents").setAttribute("aria-expanded", String(id === "documents"));
  if (!byId(id).contains(document.activeElement)) opener = document.activeElement;
  byId(id).focus({ preventScroll: true });
}

export function closePanels() {
  const wasOpen = !byId("viewer").hidden || !byId("documents").hidden;
  byId("viewer").hidden = byId("documents").hidden = true;
  byId("show-documents").setAttribute("aria-expanded", "false");
  if (wasOpen) (opener?.isConnected ? opener : byId("question")).focus();
  opener = null;
  return wasOpen;
}
