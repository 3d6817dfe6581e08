/** Elements of SVG as text, one a line. */

type Attributes = Readonly<Record<string, string | number>>;

/** `title` becomes a child: what is shown under a pointer. */
export function element(name: string, { title, ...attributes }: Attributes): string {
  const words = wordsOf(attributes);
  return title === undefined
    ? `<${name}${words}/>`
    : `<${name}${words}><title>${escaped(`${title}`)}</title></${name}>`;
}

export function textElement(text: string, attributes: Attributes): string {
  return `<text${wordsOf(attributes)}>${escaped(text)}</text>`;
}

/** Tenths are finer than a screen. */
export function number(value: number): number {
  return Math.round(value * 10) / 10;
}

function wordsOf(attributes: Attributes): string {
  return Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${escaped(`${value}`)}"`)
    .join("");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
