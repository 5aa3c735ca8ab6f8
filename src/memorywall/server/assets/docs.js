// Renders /openapi.json: every operation with what is documented of it and a form to try it.

import { byId, make, prose, table } from "./elements.js";
import { AGENT_HEADER, curl, describeRequest, send, showReply } from "./requests.js";
import {
  ID_PREFIXES, example, fields, isBytes, kind, meaning, resolve, seenIds, useSchemas,
} from "./schemas.js";

const operations = new Map();

// Text as it is; a list or an object as JSON.
function shown(given) {
  return typeof given === "string" ? given : JSON.stringify(given);
}

// The paragraphs of a description; what it says of one field, as "id: the id", is one.
const PARAGRAPHS = /\n\s*\n|\n(?=\s*[a-z_]\w*(?:, \w+)*: )/;

function fieldTable(caption, schema) {
  const notes = (resolve(schema).description ?? "").split(PARAGRAPHS);
  return table(caption, ["Field", "Type", "Default"], fields(schema).map(({ path, part, required }) => [
    [make("code", {}, path), required ? make("span", { class: "required" }, "required") : "",
      ...meaning(part)],
    [kind(part)],
    part.default === undefined || part.default === null ? [] : [make("code", {}, shown(part.default))],
  ]), notes);
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
        list: name in ID_PREFIXES ? seenIds(ID_PREFIXES[name]).id : null,
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
  if (isBytes(schema)) {
    return make("label", { for: id, class: "wide" }, "File",
      make("input", { id, name: "request-file", type: "file", required: true }));
  }
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
    for (const link of content.querySelectorAll("a[download]")) URL.revokeObjectURL(link.href);
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
  if (operation.body && !isBytes(operation.body)) parts.push(fieldTable("Request body", operation.body));
  parts.push(table("Responses", ["Status", "Meaning"],
    Object.entries(operation.responses).map(([status, reply]) => [
      [make("code", { class: status < "400" ? "good" : "bad" }, status)], prose(reply.description)])));
  if (operation.reply && fields(operation.reply).length) {
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
      make("a", { class: "anchor", href: `#${name}`, "aria-label": `Link to ${name}` }, name)));
  details.addEventListener("toggle", (event) => {
    if (event.target !== details || !details.open) return;
    unfold(details);
    history.replaceState(null, "", `#${name}`);
  });
  return details;
}

// Makes the inside of a card when it is first wanted: with all of them the page would start slowly.
function unfold(details) {
  if (details.querySelector(".content")) return;
  const operation = operations.get(details.id);
  details.append(make("div", { class: "content" }, documentation(operation), tryForm(operation)));
}

// ---- The page

function readOperations(paths) {
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, described] of Object.entries(methods)) {
      const success = Object.entries(described.responses).find(([status]) => status < "300")[1];
      const content = success.content ?? {};
      const [[bodyMedia, asked] = []] = Object.entries(described.requestBody?.content ?? {});
      operations.set(described.operationId, {
        ...described, path, method: method.toUpperCase(),
        body: asked?.schema,
        bodyMedia,
        media: Object.keys(content),
        reply: Object.values(content)[0]?.schema,
      });
    }
  }
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
    const line = byId("contents").querySelector(`[href="#${group.id}"]`);
    line.querySelector(".count").textContent = left;
    line.hidden = group.hidden = left === 0;
    found += left;
  }
  byId("page-status").textContent = found ? "" : "No operation matches the filter.";
}

function openFromAddress() {
  const wanted = byId(decodeURIComponent(location.hash.slice(1)));
  if (!wanted?.matches(".operation, .group")) return;
  if (wanted.hidden) {
    byId("operation-filter").value = "";
    filter();
  }
  show(wanted);
}

function show(wanted) {
  if (wanted.matches(".operation")) {
    unfold(wanted);
    wanted.open = true;
  }
  wanted.scrollIntoView();
  wanted.querySelector("summary").focus({ preventScroll: true });
}

function render(api) {
  const { title, version, summary } = api.info;
  byId("page-title").textContent = title;
  byId("page-version").textContent = version;
  byId("page-summary").textContent = summary;
  document.title = `${title} ${version} API`;
  useSchemas(api.components.schemas);
  readOperations(api.paths);
  for (const prefix of new Set(Object.values(ID_PREFIXES))) {
    document.body.append(make("datalist", { id: `seen-${prefix}` }));
  }
  for (const { name } of api.tags) {
    const id = `group-${name.toLowerCase()}`;
    const cards = [...operations.values()].filter(({ tags }) => tags.includes(name)).map(card);
    byId("operation-list").append(
      make("section", { id, class: "group", "data-name": name, "aria-label": name }, make("h2", {}, name), ...cards));
    byId("contents").append(make("a", { href: `#${id}` }, name, " ", make("span", { class: "count" })));
  }
  filter();
  openFromAddress();
}

async function start() {
  byId("toolbar").addEventListener("submit", (event) => event.preventDefault());
  byId("operation-filter").addEventListener("input", filter);
  byId("operation-filter").addEventListener("keydown", (event) => {
    const first = document.querySelector(".operation:not([hidden])");
    if (event.key !== "Enter" || !first) return;
    event.preventDefault();
    show(first);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    byId("operation-filter").focus();
  });
  try {
    const reply = await fetch("/openapi.json");
    if (!reply.ok) throw new Error(`${reply.status} ${reply.statusText}`);
    render(await reply.json());
    window.addEventListener("hashchange", openFromAddress);
  } catch (error) {
    byId("page-status").textContent = `/openapi.json could not be shown: ${error.message}`;
  }
}

start();
