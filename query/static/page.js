// What every part of the page needs: elements, requests, notices.

export const byId = (id) => document.getElementById(id);

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
  const response = await fetch(path, { ...options, method, headers, credentials: "same-origin" });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new RequestFailed(response.status, problem);
}

export async function call(method, path, body) {
  const options = body === undefined
    ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const response = await request(method, path, options);
  return response.status === 204 ? null : response.json();
}

export function notice(text) {
  const place = byId("notice");
  place.textContent = text;
  place.hidden = !text;
}
