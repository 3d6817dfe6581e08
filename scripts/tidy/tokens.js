/**
 * A small tokenizer for TypeScript and JavaScript: enough to tell words from strings and comments, no more.
 * Kinds: "word" (identifiers and keywords), "string" (its text without the quotes; templates without their expressions),
 * "number", "regex" and "mark" (one punctuation character each).
 *
 * @typedef {{ kind: "word" | "string" | "number" | "regex" | "mark", text: string, line: number }} Token
 */

/** After these words a slash begins a regular expression; after any other word it divides. */
const wordsBeforeRegex = new Set(
  "return typeof case in of delete void throw new instanceof else do yield await extends".split(" "),
);
const wordStart = /[\p{ID_Start}$_#@]/u;
const wordPart = /[\p{ID_Continue}$\u200c\u200d]/u;

/**
 * @param {string} source
 * @returns {Token[]}
 */
export function tokenize(source) {
  const reader = new Reader(source);
  reader.readUntilBrace(false);
  return reader.tokens;
}

class Reader {
  /** @param {string} source */
  constructor(source) {
    this.source = source;
    this.at = 0;
    this.line = 1;
    /** @type {Token[]} */
    this.tokens = [];
  }

  /**
   * Reads to the end, or (inside a template's `${`) to the brace that closes it.
   * @param {boolean} inTemplate
   */
  readUntilBrace(inTemplate) {
    let depth = 0;
    while (this.at < this.source.length) {
      const character = this.source[this.at];
      if (inTemplate && character === "}" && depth === 0) {
        this.at += 1;
        return;
      }
      if (character === "{") depth += 1;
      if (character === "}") depth -= 1;
      this.readOne(character);
    }
  }

  /** @param {string} character */
  readOne(character) {
    const next = this.source[this.at + 1];
    if (character === "\n") this.line += 1;
    if (/\s/.test(character)) this.at += 1;
    else if (this.at === 0 && character === "#" && next === "!") this.skipTo("\n", 0);
    else if (character === "/" && next === "/") this.skipTo("\n", 0);
    else if (character === "/" && next === "*") this.skipTo("*/", 2);
    else if (character === '"' || character === "'") this.readString(character);
    else if (character === "`") this.readTemplate();
    else if (character === "/" && this.regexMayBegin()) this.readRegex();
    else if (/[0-9]/.test(character)) this.readWhile("number", /[0-9A-Za-z_.]/);
    else if (wordStart.test(character)) this.readWhile("word", wordPart);
    else {
      this.push("mark", character, this.line);
      this.at += 1;
    }
  }

  /**
   * @param {Token["kind"]} kind
   * @param {string} text
   * @param {number} line
   */
  push(kind, text, line) {
    this.tokens.push({ kind, text, line });
  }

  /**
   * @param {string} end
   * @param {number} length how much of `end` belongs to what is skipped
   */
  skipTo(end, length) {
    const found = this.source.indexOf(end, this.at);
    const stop = found === -1 ? this.source.length : found + length;
    this.countLines(this.at, stop);
    this.at = stop;
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  countLines(from, to) {
    for (let index = from; index < to; index += 1) if (this.source[index] === "\n") this.line += 1;
  }

  /**
   * @param {Token["kind"]} kind
   * @param {RegExp} part
   */
  readWhile(kind, part) {
    const start = this.at;
    this.at += 1;
    while (this.at < this.source.length && part.test(this.source[this.at])) this.at += 1;
    this.push(kind, this.source.slice(start, this.at), this.line);
  }

  /** @param {string} quote */
  readString(quote) {
    const start = this.at + 1;
    const line = this.line;
    this.at = start;
    while (this.at < this.source.length && this.source[this.at] !== quote && this.source[this.at] !== "\n") {
      this.at += this.source[this.at] === "\\" ? 2 : 1;
    }
    this.countLines(start, this.at);
    this.push("string", this.source.slice(start, this.at), line);
    this.at += 1;
  }

  readTemplate() {
    const line = this.line;
    let text = "";
    this.at += 1;
    const index = this.tokens.length;
    while (this.at < this.source.length && this.source[this.at] !== "`") {
      if (this.source.startsWith("${", this.at)) {
        this.at += 2;
        this.readUntilBrace(true);
        continue;
      }
      const length = this.source[this.at] === "\\" ? 2 : 1;
      text += this.source.slice(this.at, this.at + length);
      this.countLines(this.at, this.at + length);
      this.at += length;
    }
    this.at += 1;
    this.tokens.splice(index, 0, { kind: "string", text, line });
  }

  regexMayBegin() {
    const before = this.tokens.at(-1);
    if (before === undefined) return true;
    if (before.kind === "word") return wordsBeforeRegex.has(before.text);
    if (before.kind === "mark") return before.text !== ")" && before.text !== "]" && before.text !== "}";
    return false;
  }

  readRegex() {
    const start = this.at;
    let inClass = false;
    this.at += 1;
    while (this.at < this.source.length && this.source[this.at] !== "\n") {
      const character = this.source[this.at];
      if (character === "/" && !inClass) break;
      if (character === "[") inClass = true;
      if (character === "]") inClass = false;
      this.at += character === "\\" ? 2 : 1;
    }
    this.at += 1;
    while (this.at < this.source.length && wordPart.test(this.source[this.at])) this.at += 1;
    this.push("regex", this.source.slice(start, this.at), this.line);
  }
}
