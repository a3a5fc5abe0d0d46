// The theme finds this global and does not fetch Mermaid from a content network. It forgets one
// colour: titles of the branches of an alternative, black on black in the dark.
if (window.mermaid) {
  const initialize = mermaid.initialize;
  const more = ".sectionTitle, .sectionTitle > tspan { fill: var(--md-mermaid-label-fg-color); }";
  mermaid.initialize = (settings) =>
    initialize({ ...settings, themeCSS: (settings.themeCSS || "") + more });
}
