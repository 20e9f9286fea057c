// One question: the stream of events becomes text, chips and sources.
import { element, notice, request } from "/static/page.js";
import { openCitation } from "/static/viewer.js";

export async function ask(log, question, signal) {
  const text = element("div", { className: "answer" });
  const sources = element("ul", { className: "sources" });
  const facts = element("div", { className: "facts" });
  const turn = element("article", { className: "turn" },
    element("p", { className: "asked", textContent: question }), text, sources, facts);
  log.append(turn);
  turn.scrollIntoView({ block: "end" });
  text.textContent = "…";
  let streamed = "";
  try {
    for await (const event of events(question, signal)) {
      if (event.type === "text.delta") {
        streamed += event.data.text ?? event.data.delta ?? "";
        text.textContent = streamed;
      } else if (event.type === "answer.completed") {
        show(event.data.answer ?? event.data, text, sources, facts);
      } else if (event.type === "error") {
        text.classList.add("bad");
        text.textContent = event.data.message;
      }
    }
  } catch (error) {
    if (error.name === "AbortError") {
      facts.textContent = "stopped";
    } else {
      text.classList.add("bad");
      text.textContent = error.message;
      if (error.status === 401) notice("You are not logged in any more.");
    }
  }
  turn.scrollIntoView({ block: "end", behavior: "smooth" });
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
      const found = parse(block);
      if (found) yield found;
    }
  }
}

function parse(block) {
  let type = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) type = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  return data.length ? { type, data: JSON.parse(data.join("\n")) } : null;
}

function show(answer, text, sources, facts) {
  facts.textContent = `${Math.round(answer.timings.total_ms)} ms`;
  if (answer.answer_status === "not_in_documents") {
    text.classList.add("none");
    text.textContent = "This is not in your documents.";
    return;
  }
  const byId = new Map(answer.sources.map((source) => [source.id, source]));
  const letters = Array.from(answer.text); // offsets are code points
  text.replaceChildren();
  let position = 0;
  for (const citation of answer.citations) {
    text.append(letters.slice(position, citation.marker.start).join(""));
    text.append(chip(answer, citation));
    position = citation.marker.end;
  }
  text.append(letters.slice(position).join(""));
  for (const citation of answer.citations) {
    for (const quoted of citation.sources) {
      const source = byId.get(quoted.source_id);
      const pages = quoted.locations.map((location) => location.page).join(", ");
      sources.append(element("li", {}, element("button", {
        type: "button",
        textContent: `[${citation.n}] ${source.title}, page ${pages}`,
        onclick: () => openCitation(answer, citation),
      })));
    }
  }
  if (answer.missing.length) {
    sources.append(element("li", { textContent: `Nothing found on: ${answer.missing.join("; ")}` }));
  }
}

function chip(answer, citation) {
  const quoted = citation.sources[0];
  return element("button", {
    type: "button",
    className: "chip",
    textContent: String(citation.n),
    title: quoted?.quote ?? "",
    "aria-label": `Citation ${citation.n}: show the page`,
    onclick: () => openCitation(answer, citation),
  });
}
