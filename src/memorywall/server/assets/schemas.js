// What the schemas of the document say, in words and as examples.

import { byId, make, prose } from "./elements.js";

const SEEN_IDS = 20;

// What an example says in a field of this name, whether it must be there or not.
const SAMPLES = {
  namespace: "invoices",
  key: "progress",
  value: { completed: 23, total: 100 },
  memory_type: "working",
  tags: ["batch"],
  default: "read",
  allow: [{ agent: "billing", access: "write" }],
  permissions: { default: "read", allow: [{ agent: "billing", access: "write" }] },
  default_policy: "closed",
  permission: "read",
  policy: "lru",
  status: "blocked",
  reason: "January is being closed",
  blocked_reason: "waiting for the bank",
  payload: { found: 3 },
  input: { month: "2026-01" },
  capabilities: ["invoices"],
  mime_type: "text/plain",
  pinned_namespaces: ["policies"],
  duration_seconds: 300,
  lease_seconds: 30,
  ttl_seconds: 300,
};

// The same of fields that only some examples need.
const REQUIRED_SAMPLES = {
  title: "Pay the January invoices",
  name: "Collect the invoices",
  event_type: "note",
  op: "set",
  path: "progress",
  scope: "drafting",
  filename: "invoices.txt",
  agent_id: "billing",
  principal_id: "billing",
};

// The same of fields that are texts in some bodies and numbers in others.
const TEXT_SAMPLES = { version: "1.0.0" };

// How the ids begin that a parameter or field of this name takes.
export const ID_PREFIXES = {
  entry_id: "mem",
  intent_id: "int",
  dependency_id: "int",
  task_id: "task",
  lease_id: "lse",
  grant_id: "acl",
  coordinator_id: "coord",
  claim_id: "clm",
  attachment_id: "att",
};
const IDS = new RegExp(`\\b(?:${[...new Set(Object.values(ID_PREFIXES))].join("|")})_[0-9A-Z]{26}\\b`, "g");

let schemas = {};

export function useSchemas(components) {
  schemas = components;
}

// What a schema stands for once its reference is followed and its null is left out.
export function resolve(schema) {
  if (schema.$ref) return resolve(schemas[schema.$ref.split("/").pop()]);
  const kinds = (schema.anyOf ?? []).filter((kind) => kind.type !== "null");
  return kinds.length === 1 ? resolve(kinds[0]) : schema;
}

export function kind(schema) {
  if (schema.anyOf) return [...new Set(schema.anyOf.map(kind))].join(" or ");
  const shape = resolve(schema);
  if (shape.enum) return shape.enum.join(" | ");
  if (shape.type === "array") return shape.items ? `list of ${kind(shape.items)}` : "list";
  if (shape.minimum === undefined) return shape.type ?? "any";
  // A limit that a JavaScript number cannot hold would be shown wrong.
  const top = Number.isSafeInteger(shape.maximum) ? ` to ${shape.maximum}` : " and up";
  return `${shape.type}, ${shape.minimum}${top}`;
}

// What the schema itself says of a value, below its name.
export function meaning(schema, text = schema.description) {
  const said = text ?? (schema.anyOf ?? []).find(({ description }) => description)?.description;
  return said ? [make("p", {}, ...prose(said))] : [];
}

// Every field of an object, those of objects within it by their path.
export function fields(schema, prefix = "", depth = 0) {
  const shape = resolve(schema);
  if (shape.type === "array") return fields(shape.items ?? {}, `${prefix}[]`, depth);
  return Object.entries(shape.properties ?? {}).flatMap(([name, part]) => {
    const path = prefix ? `${prefix}.${name}` : name;
    const field = { path, part, required: (shape.required ?? []).includes(name) };
    return [field, ...(depth < 5 ? fields(part, path, depth + 1) : [])];
  });
}

export function isBytes(schema) {
  return schema.format === "binary";
}

export const seenIds = (prefix) => byId(`seen-${prefix}`);

export function example(schema) {
  const shape = resolve(schema);
  const kinds = (shape.anyOf ?? []).filter((kind) => kind.type !== "null");
  if (kinds.length) return example(kinds[0]);
  if (shape.enum) return shape.enum[0];
  if (shape.type === "array") return [example(shape.items)];
  if (shape.type !== "object") return { string: "text", boolean: false }[shape.type] ?? 1;
  const chosen = Object.entries(shape.properties ?? {}).filter(
    ([name, part]) => hasSample(name, part) || (shape.required ?? []).includes(name));
  return Object.fromEntries(chosen.map(([name, part]) => [
    name,
    exampleId(name) ?? SAMPLES[name] ?? REQUIRED_SAMPLES[name] ?? textSample(name, part)
      ?? example(part)]));
}

function textSample(name, part) {
  return resolve(part).type === "string" ? TEXT_SAMPLES[name] : undefined;
}

// A name can have different types in different bodies, such as `permissions`.
function hasSample(name, part) {
  if (!(name in SAMPLES)) return false;
  const sample = SAMPLES[name];
  const { type } = resolve(part);
  if (typeof sample !== "object") return type !== "object";
  return !["string", Array.isArray(sample) ? "object" : "array"].includes(type);
}

// The id of the newest thing of its kind that a reply has shown, or how such an id begins.
function exampleId(name) {
  const prefix = ID_PREFIXES[name];
  return prefix && (seenIds(prefix).firstElementChild?.value ?? `${prefix}_…`);
}

// Offers the ids in a reply wherever one of their kind is asked for, the newest and first one first.
export function rememberIds(text) {
  for (const id of (text.match(IDS) ?? []).reverse()) {
    const list = seenIds(id.split("_")[0]);
    [...list.children].find((option) => option.value === id)?.remove();
    list.prepend(make("option", { value: id }));
    if (list.childElementCount > SEEN_IDS) list.lastElementChild.remove();
  }
}
