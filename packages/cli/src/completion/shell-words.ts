/** The words of a line as a shell splits it (POSIX, 2.2 Quoting), as far as that goes before it is whole. */

/** The last one is what the cursor stands at: begun, perhaps in an open quote, or empty. Nothing is expanded. */
export function shellWords(line: string): readonly string[] {
  const words: string[] = [];
  let word = "";
  let isBegun = false;
  let quote: "'" | '"' | null = null;
  for (let at = 0; at < line.length; at++) {
    const letter = line.charAt(at);
    if (letter === "\\" && quote !== "'") {
      at++;
      // In double quotes a backslash before another letter than these stands for itself.
      if (quote === '"' && !/["\\$`]/.test(line.charAt(at))) word += letter;
      word += line.charAt(at);
      isBegun = true;
    } else if (quote !== null) {
      if (letter === quote) quote = null;
      else word += letter;
    } else if (letter === "'" || letter === '"') {
      quote = letter;
      isBegun = true;
    } else if (/\s/.test(letter)) {
      if (isBegun) words.push(word);
      word = "";
      isBegun = false;
    } else {
      word += letter;
      isBegun = true;
    }
  }
  return [...words, word];
}
