// The way into compatibility.md: shows the rows of some areas and of some words in the column
// `when`. Without it the page is as it is: each area folded, each row with its word.
document$.subscribe(() => {
  const place = document.getElementById("differences");
  if (!place || place.firstChild) return;
  const rows = [];
  const areas = new Map();
  let area = null;
  for (const element of place.parentElement.children) {
    if (element.tagName === "H2") area = { name: element.firstChild.textContent.trim(), element };
    if (element.tagName !== "DETAILS" || !area) continue;
    areas.set(area.name, { heading: area.element, details: element });
    for (const row of element.querySelectorAll("tbody tr")) {
      rows.push({ row, area: area.name, when: row.cells[0].textContent.trim(),
                  text: row.textContent.toLowerCase() });
    }
  }
  const make = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const search = make("input", { type: "search", placeholder: "words, such as compacted" });
  search.setAttribute("aria-label", "words");
  const choice = make("select", {}, make("option", { value: "", textContent: "all areas" }),
    ...[...areas.keys()].map((name) => make("option", { value: name, textContent: name })));
  choice.setAttribute("aria-label", "area");
  const boxes = ["use", "fault", "input", "rare"].map((when) => {
    const count = rows.filter((one) => one.when === when).length;
    const box = make("input", { type: "checkbox", value: when });
    return { when, box, label: make("label", {}, box, ` ${when} (${count})`) };
  });
  const said = make("output", {});
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const whens = boxes.filter(({ box }) => box.checked).map(({ when }) => when);
    const isFiltered = words.length || whens.length || choice.value;
    const shown = new Map();
    let count = 0;
    for (const one of rows) {
      const isShown = (!whens.length || whens.includes(one.when)) &&
        (!choice.value || one.area === choice.value) &&
        words.every((word) => one.text.includes(word));
      one.row.hidden = !isShown;
      count += isShown;
      if (isShown) shown.set(one.area, true);
    }
    for (const [name, { heading, details }] of areas) {
      heading.hidden = details.hidden = Boolean(isFiltered) && !shown.has(name);
      details.open = Boolean(isFiltered);
    }
    said.textContent = isFiltered ? `${count} of ${rows.length} differences` : "";
  };
  place.addEventListener("input", show);
  place.append(choice, ...boxes.map(({ label }) => label), search, said);
});
