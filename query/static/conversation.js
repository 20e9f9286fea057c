// The conversation that the page is in: begun with its first question, kept in the address.
import { showStored } from "/static/answers.js";
import { byId, call, element, notice, request } from "/static/page.js";

const SHAPE = /^#(conv_[0-9a-f]{32})$/;
let current = null;

// Its id; begun now if there is none yet.
export async function conversation() {
  if (current) return current;
  const response = await request("POST", "/v1/conversations", {
    body: "{}",
    headers: { "content-type": "application/json" },
  });
  current = (await response.json()).id;
  history.replaceState(null, "", `#${current}`);
  byId("new-conversation").hidden = false;
  return current;
}

export function startConversation() {
  byId("new-conversation").addEventListener("click", begin);
}

// Shows the conversation that the address names.
export async function resumeConversation() {
  const named = SHAPE.exec(location.hash)?.[1];
  if (!named) return;
  const turns = await call("GET", `/v1/conversations/${named}/answers`).catch((error) => {
    if (error.status !== 404) throw error;
    history.replaceState(null, "", location.pathname);
    notice("That conversation is not there any more.");
    return null;
  });
  if (!turns) return;
  current = named;
  byId("new-conversation").hidden = false;
  if (turns.data.length) byId("hint")?.remove();
  for (const answer of turns.data) showStored(byId("log"), answer);
}

function begin() {
  current = null;
  history.replaceState(null, "", location.pathname);
  byId("new-conversation").hidden = true;
  byId("log").replaceChildren(element("p", { id: "hint", textContent: "A new conversation." }));
  byId("question").focus();
}
