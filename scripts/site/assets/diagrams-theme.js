// The theme finds this global and does not fetch Mermaid from a content network. It forgets two
// colours: titles of the branches of an alternative and heads of arrows, black on black in the dark.
if (window.mermaid) {
  const initialize = mermaid.initialize;
  const more =
    ".sectionTitle, .sectionTitle > tspan { fill: var(--md-mermaid-label-fg-color); }" +
    "marker[id*=arrowhead] path { fill: var(--md-mermaid-edge-color) !important; }" +
    "marker[id*=crosshead] path { stroke: var(--md-mermaid-edge-color) !important; }";
  mermaid.initialize = (settings) =>
    initialize({ ...settings, themeCSS: (settings.themeCSS || "") + more });
}
