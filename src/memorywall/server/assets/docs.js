"use strict";

// Renders /openapi.json. All that is shown is set as text, never as markup. The API key is read
// from its field when a request is sent and is written nowhere else.

const SHOWN_HEADERS = ["content-type", "etag", "location", "allow", "retry-after"];
const SHOWN_CHARACTERS = 200_000;
const KEY_VARIABLE = "$MEMORYWALL_API_KEY";
const AGENT_HEADER = "X-Agent-ID";

// What an example says in a field of this name, where the schema leaves it open.
const SAMPLES = {
  namespace: "invoices",
  key: "progress",
  value: { completed: 23, total: 100 },
  memory_type: "working",
  tags: ["batch"],
  default: "read",
  allow: [{ agent: "billing", access: "write" }],
};

let api = null;

const byId = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

// Text whose `backticks` mark code.
function prose(text) {
  return text.split("`").map((part, index) => (index % 2 ? make("code", {}, part) : part));
}

function table(caption, headings, rows, notes = []) {
  const head = make("tr", {}, ...headings.map((heading) => make("th", { scope: "col" }, heading)));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, ...cell))));
  return make("div", { class: "scroll" },
    make("table", {}, make("caption", {}, caption, ...notes.map((note) => make("p", {}, ...prose(note)))), make("thead", {}, head), make("tbody", {}, ...body)));
}

// ---- Schemas

// What a schema stands for once its reference is followed and its null is left out.
function resolve(schema) {
  if (schema.$ref) return resolve(api.components.schemas[schema.$ref.split("/").pop()]);
  const kinds = (schema.anyOf ?? []).filter((kind) => kind.type !== "null");
  return kinds.length === 1 ? resolve(kinds[0]) : schema;
}

function kind(schema) {
  if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
  const shape = resolve(schema);
  if (shape.enum) return shape.enum.join(" | ");
  if (shape.type === "array") return `list of ${kind(shape.items)}`;
  if (shape.minimum === undefined) return shape.type ?? "any";
  // A limit that a JavaScript number cannot hold would be shown wrong.
  const top = Number.isSafeInteger(shape.maximum) ? ` to ${shape.maximum}` : " and up";
  return `${shape.type}, ${shape.minimum}${top}`;
}

// What the schema itself says of a value, below its name.
function meaning(schema, text = schema.description) {
  const said = text ?? (schema.anyOf ?? []).find(({ description }) => description)?.description;
  return said ? [make("p", {}, ...prose(said))] : [];
}

// Every field of an object, those of objects within it by their path.
function fields(schema, prefix = "", depth = 0) {
  const shape = resolve(schema);
  if (shape.type === "array") return fields(shape.items, `${prefix}[]`, depth);
  return Object.entries(shape.properties ?? {}).flatMap(([name, part]) => {
    const path = prefix ? `${prefix}.${name}` : name;
    const field = { path, part, required: (shape.required ?? []).includes(name) };
    return [field, ...(depth < 5 ? fields(part, path, depth + 1) : [])];
  });
}

function example(schema) {
  const shape = resolve(schema);
  if (shape.enum) return shape.enum[0];
  if (shape.type === "array") return [example(shape.items)];
  if (shape.type !== "object") return { string: "text", boolean: false }[shape.type] ?? 1;
  const chosen = Object.entries(shape.properties ?? {}).filter(
    ([name]) => name in SAMPLES || (shape.required ?? []).includes(name));
  return Object.fromEntries(chosen.map(([name, part]) => [name, SAMPLES[name] ?? example(part)]));
}

function fieldTable(caption, schema) {
  const notes = (resolve(schema).description ?? "").split(/\n\s*\n/);
  return table(caption, ["Field", "Type", "Default"], fields(schema).map(({ path, part, required }) => [
    [make("code", {}, path), required ? make("span", { class: "required" }, "required") : "",
      ...meaning(part)],
    [kind(part)],
    part.default === undefined || part.default === null ? [] : [make("code", {}, String(part.default))],
  ]), notes);
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

// ---- Requests

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// fetch wants each header as one character per byte; the server reads the bytes as UTF-8.
const asBytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

// The request as the form has it, without the key.
function describeRequest(operation, form) {
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
  const body = form.elements["request-body"]?.value;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const accept = form.elements["accept"]?.value;
  if (accept) headers["Accept"] = accept;
  return { method: operation.method, path: path + (query.size ? `?${query}` : ""), headers, body };
}

function curl(operation, request) {
  const flags = request.headers.Accept === "text/event-stream" ? " --no-buffer" : "";
  const parts = [`curl${flags} -X ${request.method} ${quote(location.origin + request.path)}`];
  if (operation.security.length) parts.push(`-H "X-API-Key: ${KEY_VARIABLE}"`);
  for (const [name, value] of Object.entries(request.headers)) parts.push(`-H ${quote(`${name}: ${value}`)}`);
  if (request.body !== undefined) parts.push(`--data-raw ${quote(request.body)}`);
  return parts.join(" \\\n  ");
}

function send(operation, request, signal) {
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
async function showReply(reply, outcome, content, began) {
  const took = `${Math.round(performance.now() - began)} ms`;
  const tone = reply.ok ? "good" : "bad";
  const status = make("strong", { class: tone }, `${reply.status} ${reply.statusText}`.trim());
  const shown = SHOWN_HEADERS.filter((name) => reply.headers.has(name)).flatMap((name) => [
    make("dt", {}, name), make("dd", {}, reply.headers.get(name))]);
  const body = make("pre", { class: "body", tabindex: "0", "aria-label": "Reply body" });
  outcome.append(make("p", { class: "status" }, status, " ", make("span", {}, took)));
  content.append(make("dl", {}, ...shown), body);
  const id = reply.headers.get("location")?.split("/").pop();
  if (id) byId("seen-entries").prepend(make("option", { value: id }));

  let text = "";
  const decoder = new TextDecoder();
  const reader = reply.body?.getReader();
  while (reader && text.length < SHOWN_CHARACTERS) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
    body.textContent = text;
  }
  const isWhole = text.length < SHOWN_CHARACTERS;
  if (!isWhole) await reader.cancel();
  if (text === "") body.remove();
  else if (/[/+]json/.test(reply.headers.get("content-type"))) body.replaceChildren(pretty(text));
  if (!isWhole) body.append("\n… the rest is not shown");
}

// ---- Cards

function field(operation, parameter) {
  const { name, required, schema } = parameter;
  const shape = resolve(schema);
  const id = `${operation.operationId}--${name}`;
  const choices = shape.enum ?? (shape.type === "boolean" ? ["true", "false"] : null);
  const control = choices
    ? make("select", { id, name }, make("option", { value: "" }, "any"),
        ...choices.map((choice) => make("option", {}, choice)))
    : make("input", {
        id, name, autocomplete: "off", spellcheck: "false",
        // Only a path needs its value to be sent at all; of the rest the server says what it wants.
        required: required && parameter.in === "path",
        inputmode: shape.type === "integer" ? "numeric" : null,
        list: name === "entry_id" ? "seen-entries" : null,
        placeholder: shape.default ?? (required ? "required" : null),
      });
  return make("label", { for: id }, name, control);
}

function acceptField(operation, media) {
  const id = `${operation.operationId}--accept`;
  const options = media.map((kind) => make("option", {}, kind));
  return make("label", { for: id }, "Accept", make("select", { id, name: "accept" }, ...options));
}

function bodyField(operation, schema) {
  const id = `${operation.operationId}--body`;
  const text = JSON.stringify(example(schema), null, 2);
  const rows = String(text.split("\n").length + 1);
  const area = make("textarea", { id, name: "request-body", rows, spellcheck: "false" });
  area.value = text;
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) area.form.requestSubmit();
  });
  return make("label", { for: id, class: "wide" }, "Request body", area);
}

function tryForm(operation) {
  const button = make("button", { type: "submit" }, "Send");
  const command = make("pre", { class: "curl", "aria-label": "The same request with curl" });
  // A screen reader announces how it went; the reply itself waits to be visited.
  const outcome = make("div", { "aria-live": "polite" });
  const content = make("div");
  const form = make("form", { autocomplete: "off", "aria-label": `Try ${operation.operationId}` },
    make("h3", {}, "Try it"));
  form.append(...operation.parameters.filter(({ name }) => name !== AGENT_HEADER)
    .map((parameter) => field(operation, parameter)));
  if (operation.media.length > 1) form.append(acceptField(operation, operation.media));
  if (operation.body) form.append(bodyField(operation, operation.body));
  form.append(make("div", { class: "wide" }, button));

  const refresh = () => { command.textContent = curl(operation, describeRequest(operation, form)); };
  let running = null;
  form.addEventListener("input", refresh);
  byId("agent-id").addEventListener("input", refresh);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) return running.abort();
    running = new AbortController();
    button.textContent = "Stop";
    outcome.replaceChildren();
    content.replaceChildren();
    try {
      const began = performance.now();
      const reply = await send(operation, describeRequest(operation, form), running.signal);
      await showReply(reply, outcome, content, began);
    } catch (error) {
      const text = error.name === "AbortError" ? "Stopped." : `No reply: ${error.message}`;
      outcome.append(make("p", { class: "status" }, make("strong", { class: "bad" }, text)));
    } finally {
      running = null;
      button.textContent = "Send";
    }
  });
  refresh();
  return make("div", { class: "try" }, form, command,
    make("div", { class: "result" }, outcome, content));
}

function documentation(operation) {
  const parts = [make("p", {}, ...prose(operation.description))];
  if (operation.parameters.length) {
    parts.push(table("Parameters", ["Name", "In", "Type"], operation.parameters.map((parameter) => [
      [make("code", {}, parameter.name), parameter.required ? make("span", { class: "required" }, "required") : "",
        ...meaning(parameter.schema, parameter.description)],
      [parameter.in],
      [kind(parameter.schema)],
    ])));
  }
  if (operation.body) parts.push(fieldTable("Request body", operation.body));
  parts.push(table("Responses", ["Status", "Meaning"],
    Object.entries(operation.responses).map(([status, reply]) => [
      [make("code", { class: status < "400" ? "good" : "bad" }, status)], prose(reply.description)])));
  if (operation.reply) {
    parts.push(make("details", { class: "fields" },
      make("summary", {}, "Fields of the reply"), fieldTable("Reply", operation.reply)));
  }
  return make("div", { class: "documentation" }, ...parts);
}

function card(operation) {
  const { operationId: name, method, path, summary } = operation;
  const details = make("details", { class: "operation", id: name },
    make("summary", {},
      make("span", { class: `method ${method.toLowerCase()}` }, method),
      make("span", { class: "path" }, ...path.split(/(?<=\/)/).flatMap((part) => [part, make("wbr")])),
      make("span", { class: "what" }, summary),
      make("a", { class: "anchor", href: `#${name}`, "aria-label": `Link to ${name}` }, name)),
    make("div", { class: "content" }, documentation(operation), tryForm(operation)));
  details.addEventListener("toggle", (event) => {
    if (event.target === details && details.open) history.replaceState(null, "", `#${name}`);
  });
  return details;
}

// ---- The page

function operations() {
  return Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => {
      const success = Object.entries(described.responses).find(([status]) => status < "300")[1];
      const content = success.content ?? {};
      return {
        ...described, path, method: method.toUpperCase(),
        body: described.requestBody?.content["application/json"].schema,
        media: Object.keys(content),
        reply: Object.values(content)[0]?.schema,
      };
    }));
}

function filter() {
  const words = byId("operation-filter").value.toLowerCase().split(/\s+/);
  let found = 0;
  for (const group of document.querySelectorAll(".group")) {
    for (const one of group.querySelectorAll(".operation")) {
      const text = `${group.dataset.name} ${one.querySelector("summary").textContent}`.toLowerCase();
      one.hidden = !words.every((word) => text.includes(word));
    }
    const left = group.querySelectorAll(".operation:not([hidden])").length;
    group.hidden = left === 0;
    found += left;
  }
  byId("page-status").textContent = found ? "" : "No operation matches the filter.";
}

function openFromAddress() {
  const wanted = byId(decodeURIComponent(location.hash.slice(1)));
  if (!wanted?.classList.contains("operation")) return;
  if (wanted.hidden) {
    byId("operation-filter").value = "";
    filter();
  }
  wanted.open = true;
  wanted.scrollIntoView();
  wanted.querySelector("summary").focus({ preventScroll: true });
}

function render() {
  const { title, version, summary } = api.info;
  byId("page-title").textContent = title;
  byId("page-version").textContent = version;
  byId("page-summary").textContent = summary;
  document.title = `${title} ${version} API`;
  const all = operations();
  for (const { name } of api.tags) {
    byId("operation-list").append(make("section", { class: "group", "data-name": name, "aria-label": name },
      make("h2", {}, name), ...all.filter(({ tags }) => tags.includes(name)).map(card)));
  }
  filter();
  openFromAddress();
}

async function start() {
  byId("toolbar").addEventListener("submit", (event) => event.preventDefault());
  byId("operation-filter").addEventListener("input", filter);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    byId("operation-filter").focus();
  });
  try {
    const reply = await fetch("/openapi.json");
    if (!reply.ok) throw new Error(`${reply.status} ${reply.statusText}`);
    api = await reply.json();
    render();
    window.addEventListener("hashchange", openFromAddress);
  } catch (error) {
    byId("page-status").textContent = `/openapi.json could not be shown: ${error.message}`;
  }
}

start();
