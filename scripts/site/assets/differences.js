// The way into compatibility.md: shows the rows of some areas and of some words in the column
// `when`. Without it the page is as it is: each area folded, each row with its word.
document$.subscribe(() => {
  const place = document.getElementById("differences");
  if (!place || place.firstChild) return;
  const blocks = []; // each folded table, with the headings above it
  let area = "";
  let headings = [];
  for (const element of place.parentElement.children) {
    if (element.tagName === "H2") {
      area = element.firstChild.textContent.trim();
      headings = [element];
    }
    if (element.tagName === "H3") headings = [headings[0], element];
    if (element.tagName !== "DETAILS" || element.querySelector("th")?.textContent !== "when") continue;
    const rows = [...element.querySelectorAll("tbody tr")].map((row) => ({
      row, when: row.cells[0].textContent.trim(), text: row.textContent.toLowerCase() }));
    blocks.push({ area, headings, details: element, rows });
  }
  const rows = blocks.flatMap((block) => block.rows);
  const make = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const search = make("input", { type: "search", placeholder: "words, such as compacted" });
  search.setAttribute("aria-label", "words");
  const choice = make("select", {}, make("option", { value: "", textContent: "all areas" }),
    ...[...new Set(blocks.map((block) => block.area))].map((name) => make("option", { value: name, textContent: name })));
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
    const isFiltered = Boolean(words.length || whens.length || choice.value);
    let count = 0;
    for (const { headings } of blocks) for (const heading of headings) heading.hidden = isFiltered;
    for (const block of blocks) {
      const shown = block.rows.filter(({ when, text }) =>
        (!whens.length || whens.includes(when)) && (!choice.value || block.area === choice.value) &&
        words.every((word) => text.includes(word)));
      for (const { row } of block.rows) row.hidden = true;
      for (const { row } of shown) row.hidden = false;
      count += shown.length;
      block.details.hidden = !shown.length;
      block.details.open = isFiltered;
      if (shown.length) for (const heading of block.headings) heading.hidden = false;
    }
    said.textContent = isFiltered ? `${count} of ${rows.length} differences` : "";
  };
  place.addEventListener("input", show);
  place.append(choice, ...boxes.map(({ label }) => label), search, said);
});
