// What can stand at a place of a spec's YAML, from its JSON Schema. No DOM, no editor.

const KEY = /^(\s*(?:- +)*)([\w-]*)$/; // a key, or the beginning of one, and nothing behind it
const VALUE = /^(\s*(?:- +)*)([\w.-]+):[ \t]+["']?([\w.-]*)$/;
const ENTRY = /^(\s*(?:- +)*)(?:"([^"]+)"|'([^']+)'|([^\s#'"&*!|>%@`:{[-][^:#]*?)):(?:\s+(.*))?$/;
const BLOCK = /^(?:&\S+\s+|!\S+\s+)*[|>][+-]?\d?[+-]?\s*(?:#.*)?$/;
const IN_LIST = Symbol("a list's item");

/**
 * What fits at `row`, `column` of `lines`: `{from, items}`, where `from` is the column at which what is typed begins and an
 * item is `{label, detail, insert}`. Null where nothing can be proposed (in a comment, in a block of text).
 */
export function completionsAt(schema, lines, row, column) {
  const before = lines[row].slice(0, column);
  if (/(^|\s)#/.test(before) || inBlock(lines, row, column)) return null;
  const flow = flowAt(lines, row, before);
  if (flow) return inFlow(schema, flow, lines[row].slice(column), column);
  const value = VALUE.exec(before);
  if (value) {
    const path = [...pathOf(lines, row, value[1]), value[2]];
    return fitting(valuesAt(schema, path), value[3], column);
  }
  const key = KEY.exec(before);
  if (!key) return null;
  const path = pathOf(lines, row, key[1]);
  const taken = siblings(lines, row, key[1].length);
  const follows = (name, part) => opening(schema, part, name, key[1].length);
  return fitting(keysAt(schema, path, taken, lines[row].slice(column), follows), key[2], column);
}

const valuesAt = (schema, path) => values(schema, at(schema, path)).map((label) => ({ label, detail: "", insert: label }));

// The keys that are not `taken`. `rest` is what stands behind them; `follows(name, part)` is added where that has no colon.
function keysAt(schema, path, taken, rest, follows) {
  const fields = keys(schema, at(schema, path)).filter(([name]) => !taken.has(name));
  return fields.map(([name, part]) => ({
    label: name,
    detail: part.description ?? resolved(schema, part)[0]?.description ?? "",
    insert: rest.trimStart().startsWith(":") ? name : name + follows(name, part),
  }));
}

/**
 * The place in a mapping or a list that is written in one line, such as `rollout: {mode: rolling, max_`: `{path, key,
 * typed, taken}`, where `key` is null while a key is typed. Null outside of such, and in quotes.
 */
function flowAt(lines, row, before) {
  const entry = ENTRY.exec(before);
  const item = /^(\s*(?:- +)+)(?=[{[])/.exec(before);
  const text = entry ? entry[5] ?? "" : item ? before.slice(item[1].length) : "";
  if (!/^[{[]/.test(text)) return null;
  const open = [];
  let quote = "";
  let word = "";
  for (const char of text) {
    const top = open.at(-1);
    if (quote) quote = char === quote ? "" : quote;
    else if (char === '"' || char === "'") quote = char;
    else if (char === "{" || char === "[") {
      open.push({ mapping: char === "{", key: null, taken: new Set() });
      word = "";
    } else if (char === "}" || char === "]") {
      open.pop();
      word = "";
    } else if (char === "," && top) [top.key, word] = [null, ""];
    else if (char === ":" && top?.mapping && top.key === null) {
      top.key = word.trim();
      top.taken.add(top.key);
      word = "";
    } else word += char;
  }
  const top = open.at(-1);
  if (!top || quote || !/^\s*[\w.-]*$/.test(word)) return null;
  const head = pathOf(lines, row, entry ? entry[1] : item[1]);
  const inner = open.slice(0, -1).map((each) => (each.mapping ? each.key : IN_LIST));
  const path = [...head, ...(entry ? [nameOf(entry)] : []), ...inner, ...(top.mapping ? [] : [IN_LIST])];
  return { path, key: top.mapping ? top.key : undefined, typed: word.trimStart(), taken: top.taken };
}

function inFlow(schema, { path, key, typed, taken }, rest, column) {
  if (key === null) return fitting(keysAt(schema, path, taken, rest, () => ": "), typed, column);
  return fitting(valuesAt(schema, key === undefined ? path : [...path, key]), typed, column);
}

function fitting(items, typed, column) {
  const small = typed.toLowerCase();
  const found = items.filter((item) => item.label.toLowerCase().includes(small) && item.label !== typed);
  // What begins so comes before what only holds it; otherwise the schema's own order stands.
  found.sort((a, b) => Number(b.label.toLowerCase().startsWith(small)) - Number(a.label.toLowerCase().startsWith(small)));
  return { from: column - typed.length, items: found };
}

// What follows a key: its value in the same line, or in the lines below.
function opening(schema, part, name, indent) {
  const choices = resolved(schema, part);
  const below = `\n${" ".repeat(indent + 2)}`;
  if (["run", "setup"].includes(name) && indent === 0) return `: |${below}`;
  const plain = choices.some((each) => types(each).some((type) => type !== "object" && type !== "array" && type !== "null"));
  if (plain || !choices.length) return ": ";
  return choices.some((each) => types(each).includes("object")) ? `:${below}` : `:${below}- `;
}

const indentOf = (text) => text.length - text.trimStart().length;
const empty = (text) => /^\s*(#.*)?$/.test(text);

// The keys above a place whose line begins with `head` (spaces and dashes), from the outermost.
function pathOf(lines, row, head) {
  const path = [];
  let indent = head.length;
  if (head.includes("-")) {
    path.push(IN_LIST);
    indent = indentOf(head);
  }
  let inList = head.includes("-");
  for (let above = row - 1; above >= 0 && (indent > 0 || inList); above--) {
    if (empty(lines[above])) continue;
    const entry = ENTRY.exec(lines[above]);
    const dashed = /^\s*- +/.exec(lines[above]);
    const starts = indentOf(lines[above]);
    if (dashed && !inList && starts < indent) {
      // The first line of the item that the place is in.
      if (entry && entry[1].length < indent) path.push(nameOf(entry));
      path.push(IN_LIST);
      [indent, inList] = [starts, true];
    } else if (entry && !dashed && (starts < indent || (inList && starts <= indent))) {
      path.push(nameOf(entry));
      [indent, inList] = [starts, false];
    }
  }
  return path.reverse();
}

const nameOf = (entry) => (entry[2] ?? entry[3] ?? entry[4]).trim();

// The other keys of the mapping in which the line stands.
function siblings(lines, row, indent) {
  const found = new Set();
  for (const step of [-1, 1]) {
    for (let other = row + step; other >= 0 && other < lines.length; other += step) {
      if (empty(lines[other])) continue;
      const entry = ENTRY.exec(lines[other]);
      const starts = entry ? entry[1].length : indentOf(lines[other]);
      if (starts < indent) break;
      const dashed = entry?.[1].includes("-");
      if (dashed && step > 0 && starts === indent) break; // the next item
      if (entry && starts === indent) found.add(nameOf(entry));
      if (dashed && starts === indent) break;
    }
  }
  return found;
}

// Whether the row belongs to a text such as `run: |`.
function inBlock(lines, row, column) {
  let indent = lines[row].trim() ? indentOf(lines[row]) : column;
  for (let above = row - 1; above >= 0; above--) {
    if (!lines[above].trim()) continue;
    const starts = indentOf(lines[above]);
    if (starts >= indent) continue;
    const entry = ENTRY.exec(lines[above]);
    if (entry && BLOCK.test(entry[5] ?? "")) return true;
    indent = starts;
    if (indent === 0) return false;
  }
  return false;
}

// --- the schema ---

/** All schemas that may hold for a part, with references followed. */
function resolved(schema, part) {
  if (!part) return [];
  if (part.$ref) return resolved(schema, schema.$defs[part.$ref.split("/").at(-1)]);
  const choices = part.anyOf ?? part.oneOf;
  if (choices && !part.properties) return choices.flatMap((choice) => resolved(schema, choice));
  return [part];
}

function at(schema, path) {
  let parts = [schema];
  for (const step of path) {
    parts = parts.flatMap((part) => {
      if (step === IN_LIST) return resolved(schema, part.items);
      const own = part.properties && Object.hasOwn(part.properties, step) ? part.properties[step] : null;
      return resolved(schema, own ?? (typeof part.additionalProperties === "object" ? part.additionalProperties : null));
    });
  }
  return parts;
}

function keys(schema, parts) {
  const found = new Map();
  for (const part of parts) for (const [name, each] of Object.entries(part.properties ?? {})) found.set(name, each);
  return [...found].filter(([name]) => !name.startsWith("_"));
}

const types = (part) => [part.type ?? []].flat();

function values(schema, parts) {
  const found = new Set();
  for (const part of parts) {
    for (const each of part.enum ?? []) found.add(String(each));
    if (part.const !== undefined) found.add(String(part.const));
    if (types(part).includes("boolean")) for (const each of ["true", "false"]) found.add(each);
    if (part.default !== undefined && typeof part.default !== "object") found.add(String(part.default));
  }
  return [...found];
}
