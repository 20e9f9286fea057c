// One question: the stream of events becomes text, chips and sources.
import { showText } from "/static/answer_text.js";
import { element, request } from "/static/page.js";
import { openCitation } from "/static/viewer.js";

// Why an answer is quotes although something else was wanted (docs/answers.md).
const REASONS = {
  gate_failed: "The language model has not passed the gate, so you see quotes.",
  gate_not_run: "The language model has not been through the gate yet, so you see quotes.",
  no_generator: "No language model is set up, so you see quotes.",
  generator_unavailable: "The language model does not answer, so you see quotes.",
  generator_overloaded: "The language model is busy, so you see quotes.",
  generator_late: "The language model took too long, so you see quotes.",
  generator_refused: "The language model refused the question, so you see quotes.",
  prompt_too_long: "The question leaves the language model no room, so you see quotes.",
  nothing_written: "The language model wrote nothing, so you see quotes.",
  nothing_supported: "Nothing the language model wrote is supported, so you see quotes.",
};

export async function ask(log, asked, signal) {
  const turn = newTurn(log, asked.question);
  const answer = { text: "", citations: [], sources: [], sentences: [] };
  try {
    for await (const event of events(asked, signal)) {
      const following = isAtEnd(log);
      take(event, answer, turn);
      if (following) log.scrollTop = log.scrollHeight;
    }
  } catch (error) {
    if (error.name === "AbortError") turn.facts.textContent = "Stopped.";
    else fail(turn, error.message, error.requestId);
  }
}

// An answer from an earlier visit, the same object that was streamed then.
export function showStored(log, answer) {
  const turn = newTurn(log, answer.question);
  if (answer.answer_status === "error" && !answer.text) {
    fail(turn, "This question could not be answered.");
    return;
  }
  showText(answer, turn.text);
  finish(answer, turn);
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
    case "citation.verified":
      Object.assign(answer.citations.find((citation) => citation.id === event.id) ?? {},
        { verdict: event.verdict });
      break;
    case "sentence.verified":
      answer.sentences.push(event.sentence);
      break;
    case "answer.completed":
      Object.assign(answer, event.answer);
      finish(answer, turn);
      break;
    case "error":
      fail(turn, event.message, "", answer.text);
      return;
    default:
      return;
  }
  showText(answer, turn.text);
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

// Text that was shown stays; the error stands below it.
function fail(turn, message, requestId, shown = "") {
  if (shown) {
    turn.text.after(element("p", { className: "broken", role: "alert", textContent: message }));
  } else {
    turn.text.className = "answer bad";
    turn.text.setAttribute("role", "alert");
    turn.text.textContent = message;
  }
  turn.facts.textContent = requestId ? `Request ${requestId}` : "";
}

async function* events(asked, signal) {
  const response = await request("POST", "/v1/answers", {
    signal,
    body: JSON.stringify({ ...asked, stream: true }),
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

function finish(answer, turn) {
  turn.facts.textContent = facts(answer);
  if (answer.answer_status === "not_in_documents") {
    turn.text.className = "answer none";
    badge(turn, "Not in your documents");
    return;
  }
  if (answer.answer_status === "partial") badge(turn, "Answered in part");
  if (answer.mode === "generative") badge(turn, `Written by ${answer.model}, each sentence checked`);
  const byId = new Map(answer.sources.map((source) => [source.id, source]));
  for (const citation of answer.citations) {
    for (const quoted of citation.sources) {
      const pages = [...new Set(quoted.locations.map((place) => place.page))];
      const where = pages.length ? `, page ${pages.join(", ")}` : "";
      turn.sources.append(element("li", {}, element("button", {
        type: "button",
        textContent: `[${citation.n}] ${byId.get(quoted.source_id)?.title ?? "?"}${where}`,
        disabled: !quoted.quote,
        onclick: () => openCitation(answer, citation, quoted),
      })));
    }
  }
}

function badge(turn, text) {
  turn.text.before(element("p", { className: "badge", textContent: text }));
}

function facts(answer) {
  const told = [`${Math.round(answer.timings.total_ms)} ms`];
  const { prompt_tokens: prompt, cached_tokens: cached } = answer.usage;
  if (prompt) told.push(`${prompt} tokens read, ${cached} of them from the cache`);
  if (answer.mode === "extractive" && REASONS[answer.mode_reason]) {
    told.push(REASONS[answer.mode_reason]);
  }
  return told.join(" · ");
}
