// The page: no build step, no library.
import { ask } from "/static/answers.js";
import { conversation, resumeConversation, startConversation } from "/static/conversation.js";
import { startDocuments } from "/static/documents.js";
import { byId, call, closePanels, notice } from "/static/page.js";
import { openFromAddress, startViewer } from "/static/viewer.js";

const question = byId("question");
let running = null;

byId("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = question.value.trim();
  if (!text || running) return;
  running = new AbortController();
  question.value = "";
  byId("hint")?.remove();
  byId("stop").hidden = false;
  byId("send").disabled = true;
  byId("log").setAttribute("aria-busy", "true");
  try {
    const asked = { question: text, mode: byId("mode").value, conversation_id: await conversation() };
    await ask(byId("log"), asked, running.signal);
  } catch (error) {
    question.value = text; // nothing was asked: no conversation could be begun
    notice(error.message);
  } finally {
    running = null;
    byId("stop").hidden = true;
    byId("send").disabled = false;
    byId("log").setAttribute("aria-busy", "false");
    if (document.activeElement === document.body || document.activeElement === byId("stop")) {
      question.focus();
    }
  }
});

question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    byId("ask").requestSubmit();
  }
});
byId("stop").addEventListener("click", () => running?.abort());
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (running) running.abort();
  else closePanels();
});
byId("log-out").addEventListener("click", async () => {
  await call("POST", "/v1/logout").catch((error) => notice(error.message));
  showLoggedOut();
});
document.addEventListener("logged-out", showLoggedOut);

function showLoggedOut() {
  closePanels();
  for (const id of ["chat", "show-documents", "log-out", "new-conversation"]) {
    byId(id).hidden = true;
  }
  byId("queue").textContent = "";
  byId("refused").hidden = location.pathname !== "/login";
  byId("logged-out").hidden = false;
}

async function start() {
  const about = await call("GET", "/v1/about");
  byId("version").textContent = `Pincite ${about.version}`;
  byId("source").href = about.source;
  const me = await call("GET", "/v1/me").catch((error) => {
    if (error.status !== 401) throw error;
    return null;
  });
  if (!me) return;
  if (location.pathname === "/login") history.replaceState(null, "", "/");
  for (const id of ["chat", "show-documents", "log-out"]) byId(id).hidden = false;
  question.maxLength = me.max_question_chars;
  startViewer();
  startDocuments(me);
  startConversation();
  question.focus();
  await resumeConversation();
  await openFromAddress();
}

start().catch((error) => notice(error.message));
