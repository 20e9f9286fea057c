// The text of an answer as elements: chips in place of citation markers, sentences by their verdict.
import { element } from "/static/page.js";
import { openCitation } from "/static/viewer.js";

const VERDICTS = {
  weak: "Only partly supported by what it cites.",
  unsupported: "Not supported by the documents.",
};
const REPLACED = "A verbatim quote, in place of a sentence that the documents do not support.";

// Offsets are code points. A marker whose citation is not known yet is not shown.
export function showText(answer, place) {
  const letters = Array.from(answer.text);
  const markers = answer.citations.filter((citation) => citation.marker.end <= letters.length);
  const sentences = (answer.sentences ?? []).filter((sentence) => sentence.end <= letters.length);
  const byMarker = new Map(markers.map((citation) => [citation.marker.start, citation]));
  const cuts = new Set([0, letters.length]);
  for (const { marker } of markers) cuts.add(marker.start).add(marker.end);
  for (const { start, end } of sentences) cuts.add(start).add(end);
  const at = [...cuts].sort((one, other) => one - other);
  place.replaceChildren(...at.slice(1).map((end, index) => {
    const start = at[index];
    const cited = byMarker.get(start);
    if (cited) return chip(answer, cited);
    const text = letters.slice(start, end).join("");
    const around = sentences.find((sentence) => sentence.start <= start && end <= sentence.end);
    return around ? judged(text, around) : text;
  }));
}

function judged(text, sentence) {
  if (sentence.is_replaced) return element("span", { className: "replaced", title: REPLACED }, text);
  const title = VERDICTS[sentence.verdict];
  return title ? element("span", { className: sentence.verdict, title }, text) : text;
}

function chip(answer, citation) {
  const quoted = citation.sources[0];
  const doubt = VERDICTS[citation.verdict];
  const verdict = doubt ? ` ${doubt}` : "";
  return element("button", {
    type: "button",
    className: `chip ${citation.verdict}`,
    textContent: String(citation.n),
    title: (quoted.quote ?? "The document was deleted.") + (doubt ? `\n${doubt}` : ""),
    disabled: !quoted.quote,
    "aria-label": `Citation ${citation.n}: show the page.${verdict}`,
    onclick: () => openCitation(answer, citation),
  });
}
