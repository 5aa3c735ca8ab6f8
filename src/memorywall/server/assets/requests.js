// Sends what a form describes, tells how to do the same with curl, and shows the reply. The API key
// is read from its field when a request is sent and is written nowhere else.

import { byId, make } from "./elements.js";
import { isBytes, rememberIds } from "./schemas.js";

export const AGENT_HEADER = "X-Agent-ID";
const KEY_VARIABLE = "$MEMORYWALL_API_KEY";
const STREAM = "text/event-stream";

const SHOWN_HEADERS = ["content-type", "content-disposition", "etag", "repr-digest", "location",
  "allow", "retry-after"];
const SHOWN_CHARACTERS = 200_000;

// ---- Requests

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// fetch wants each header as one character per byte; the server reads the bytes as UTF-8.
const asBytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

// The request as the form has it, without the key.
export function describeRequest(operation, form) {
  const query = new URLSearchParams();
  const headers = {};
  let path = operation.path;
  for (const { name, in: place } of operation.parameters) {
    const value = name === AGENT_HEADER ? byId("agent-id").value : form.elements[name].value;
    if (value === "") continue;
    if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (place === "query") query.append(name, value);
    else headers[name] = value;
  }
  const body = form.elements["request-body"]?.value ?? form.elements["request-file"]?.files[0];
  if (operation.body) headers["Content-Type"] = operation.bodyMedia;
  const accept = form.elements["accept"]?.value;
  if (accept) headers["Accept"] = accept;
  return { method: operation.method, path: path + (query.size ? `?${query}` : ""), headers, body };
}

export function curl(operation, request) {
  let flags = "";
  if ((request.headers.Accept ?? operation.media[0]) === STREAM) flags = " --no-buffer";
  else if (operation.reply && isBytes(operation.reply)) flags = " --remote-name --remote-header-name";
  const parts = [`curl${flags} -X ${request.method} ${quote(location.origin + request.path)}`];
  if (operation.security.length) parts.push(`-H "X-API-Key: ${KEY_VARIABLE}"`);
  for (const [name, value] of Object.entries(request.headers)) parts.push(`-H ${quote(`${name}: ${value}`)}`);
  if (operation.body && isBytes(operation.body)) parts.push(`--data-binary ${quote(`@${request.body?.name ?? "FILE"}`)}`);
  else if (request.body !== undefined) parts.push(`--data-raw ${quote(request.body)}`);
  return parts.join(" \\\n  ");
}

export function send(operation, request, signal) {
  const headers = { ...request.headers };
  const key = byId("api-key").value.trim();
  if (operation.security.length && key) headers["X-API-Key"] = key;
  for (const name of Object.keys(headers)) headers[name] = asBytes(headers[name]);
  return fetch(request.path, {
    method: request.method, headers, body: request.body, signal,
    cache: "no-store", credentials: "omit", redirect: "error",
  });
}

// Shows a reply while it arrives: an event stream has no end but the reader's patience.
export async function showReply(reply, outcome, content, began) {
  const took = `${Math.round(performance.now() - began)} ms`;
  const tone = reply.ok ? "good" : "bad";
  const status = make("strong", { class: tone }, `${reply.status} ${reply.statusText}`.trim());
  const shown = SHOWN_HEADERS.filter((name) => reply.headers.has(name)).flatMap((name) => [
    make("dt", {}, name), make("dd", {}, reply.headers.get(name))]);
  const body = make("pre", { class: "body", tabindex: "0", "aria-label": "Reply body" });
  outcome.append(make("p", { class: "status" }, status, " ", make("span", {}, took)));
  content.append(make("dl", {}, ...shown), body);
  const filename = /filename\*=UTF-8''([^;]+)/.exec(reply.headers.get("content-disposition"))?.[1];
  if (filename) return body.replaceWith(await saveLink(reply, decodeURIComponent(filename)));

  let text = "";
  const decoder = new TextDecoder();
  const reader = reply.body?.getReader();
  while (reader && text.length < SHOWN_CHARACTERS) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
    body.textContent = text;
  }
  rememberIds(text);
  const isWhole = text.length < SHOWN_CHARACTERS;
  if (!isWhole) await reader.cancel();
  if (text === "") body.remove();
  else if (/[/+]json/.test(reply.headers.get("content-type"))) body.replaceChildren(pretty(text));
  if (!isWhole) body.append("\n… the rest is not shown");
}

async function saveLink(reply, filename) {
  const file = await reply.blob();
  return make("p", {}, make("a", { href: URL.createObjectURL(file), download: filename }, `Save ${filename}`),
    ` (${file.size.toLocaleString("en")} bytes)`);
}

// ---- JSON text, indented and coloured token by token: parsing it would round large numbers.

function pretty(text) {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  const shown = document.createDocumentFragment();
  let depth = 0;
  const line = () => "\n" + "  ".repeat(Math.max(depth, 0));
  tokens.forEach((token, index) => {
    const before = tokens[index - 1];
    if (token === "{" || token === "[") {
      depth += 1;
      shown.append(token, /[}\]]/.test(tokens[index + 1]?.[0] ?? "}") ? "" : line());
    } else if (token === "}" || token === "]") {
      depth -= 1;
      shown.append(before === "{" || before === "[" ? "" : line(), token);
    } else if (token === ",") shown.append(token, line());
    else if (token === ":") shown.append(": ");
    else {
      const name = tokens[index + 1] === ":" ? "name" : token[0] === '"' ? "text" : "literal";
      shown.append(make("span", { class: `json-${name}` }, token));
    }
  });
  return shown;
}
