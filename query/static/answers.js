// One question: the stream of events becomes text, chips and sources.
import { element, request } from "/static/page.js";
import { openCitation } from "/static/viewer.js";

export async function ask(log, question, signal) {
  const turn = newTurn(log, question);
  const answer = { text: "", citations: [], sources: [] };
  try {
    for await (const event of events(question, signal)) {
      const following = isAtEnd(log);
      take(event, answer, turn);
      if (following) log.scrollTop = log.scrollHeight;
    }
  } catch (error) {
    if (error.name === "AbortError") turn.facts.textContent = "Stopped.";
    else fail(turn, error.message, error.requestId);
  }
}

function newTurn(log, question) {
  const text = element("div", { className: "answer", textContent: "…" });
  const sources = element("ul", { className: "sources", "aria-label": "Sources" });
  const facts = element("div", { className: "facts" });
  log.append(element("article", { className: "turn" },
    element("p", { className: "asked", textContent: question }), text, sources, facts));
  log.scrollTop = log.scrollHeight;
  return { text, sources, facts };
}

// Whoever scrolled up to read is left alone.
function isAtEnd(log) {
  return log.scrollHeight - log.scrollTop - log.clientHeight < 80;
}

function take(event, answer, turn) {
  switch (event.type) {
    case "retrieval.sources": {
      answer.sources = event.sources;
      const documents = new Set(event.sources.map((source) => source.document_id)).size;
      turn.facts.textContent = `Reading ${count(event.sources.length, "passage")}`
        + ` of ${count(documents, "document")}…`;
      return;
    }
    case "text.delta":
      answer.text += event.delta;
      break;
    case "citation.added":
      answer.citations.push(event.citation);
      break;
    case "answer.completed":
      Object.assign(answer, event.answer);
      finish(answer, turn);
      break;
    case "error":
      fail(turn, event.message);
      return;
    default:
      return;
  }
  showText(answer, turn.text);
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function fail(turn, message, requestId) {
  turn.text.className = "answer bad";
  turn.text.setAttribute("role", "alert");
  turn.text.textContent = message;
  turn.facts.textContent = requestId ? `Request ${requestId}` : "";
}

async function* events(question, signal) {
  const response = await request("POST", "/v1/answers", {
    signal,
    body: JSON.stringify({ question, stream: true }),
    headers: { "content-type": "application/json", accept: "text/event-stream" },
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice(6)); // comments have no data
    }
  }
}

// The text with a chip in place of each marker whose citation is known. Offsets are code points.
function showText(answer, place) {
  const letters = Array.from(answer.text);
  place.replaceChildren();
  let position = 0;
  for (const citation of answer.citations) {
    if (citation.marker.end > letters.length) continue;
    place.append(letters.slice(position, citation.marker.start).join(""), chip(answer, citation));
    position = citation.marker.end;
  }
  place.append(letters.slice(position).join(""));
}

function chip(answer, citation) {
  const [quoted] = citation.sources;
  return element("button", {
    type: "button",
    className: "chip",
    textContent: String(citation.n),
    title: quoted.quote ?? "The document was deleted.",
    disabled: !quoted.quote,
    "aria-label": `Citation ${citation.n}: show the page`,
    onclick: () => openCitation(answer, citation),
  });
}

function finish(answer, turn) {
  turn.facts.textContent = `${Math.round(answer.timings.total_ms)} ms`;
  if (answer.answer_status === "not_in_documents") {
    turn.text.className = "answer none";
    turn.text.before(element("p", { className: "badge", textContent: "Not in your documents" }));
    return;
  }
  if (answer.answer_status === "partial") {
    turn.text.before(element("p", { className: "badge", textContent: "Answered in part" }));
  }
  const byId = new Map(answer.sources.map((source) => [source.id, source]));
  for (const citation of answer.citations) {
    for (const quoted of citation.sources) {
      const pages = [...new Set(quoted.locations.map((place) => place.page))];
      const where = pages.length ? `, page ${pages.join(", ")}` : "";
      turn.sources.append(element("li", {}, element("button", {
        type: "button",
        textContent: `[${citation.n}] ${byId.get(quoted.source_id)?.title ?? "?"}${where}`,
        disabled: !quoted.quote,
        onclick: () => openCitation(answer, citation),
      })));
    }
  }
}
