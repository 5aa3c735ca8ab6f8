// Makes elements. All that is shown is set as text, never as markup.

export const byId = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

// Text whose `backticks` mark code.
export function prose(text) {
  return text.split("`").map((part, index) => (index % 2 ? make("code", {}, part) : part));
}

export function table(caption, headings, rows, notes = []) {
  const head = make("tr", {}, ...headings.map((heading) => make("th", { scope: "col" }, heading)));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, ...cell))));
  return make("div", { class: "scroll" },
    make("table", {}, make("caption", {}, caption, ...notes.map((note) => make("p", {}, ...prose(note)))), make("thead", {}, head), make("tbody", {}, ...body)));
}
