// The page: no build step, no library. Text is only ever set as text, never as HTML.
import { ask } from "/static/answers.js";
import { startDocuments } from "/static/documents.js";
import { openFromAddress, startViewer } from "/static/viewer.js";
import { byId, call, notice } from "/static/page.js";

const log = byId("log");
const form = byId("ask");
const question = byId("question");
const stop = byId("stop");
let running = null;

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = question.value.trim();
  if (!text || running) return;
  running = new AbortController();
  question.value = "";
  stop.hidden = false;
  log.setAttribute("aria-busy", "true");
  try {
    await ask(log, text, running.signal);
  } finally {
    running = null;
    stop.hidden = true;
    log.setAttribute("aria-busy", "false");
    question.focus();
  }
});

question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});
stop.addEventListener("click", () => running?.abort());
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") running?.abort();
});

async function start() {
  const about = await call("GET", "/v1/about");
  byId("version").textContent = `Pincite ${about.version}`;
  byId("source").href = about.source;
  try {
    await call("GET", "/v1/me");
  } catch (error) {
    if (error.status === 401) {
      notice("You are not logged in: open the address that `pincite up` prints.");
      return;
    }
    throw error;
  }
  startViewer();
  startDocuments();
  await openFromAddress();
  question.focus();
}

start().catch((error) => notice(error.message));
