/**
 * The repository as the checks see it: paths with forward slashes, from the top, and their texts. Tests hand in small trees.
 *
 * @typedef {{ file: string, line: number, text: string }} Problem
 * @typedef {import("./tokens.js").Token} Token
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { tokenize } from "./tokens.js";

const skippedFolders = new Set(["node_modules", "dist", ".git", "data", "coverage"]);
const readEndings = [".ts", ".js", ".json", ".md", ".svg"];

export class Tree {
  /** @type {Map<string, Token[]>} */
  #tokens = new Map();

  /** @param {ReadonlyMap<string, string>} texts */
  constructor(texts) {
    this.texts = texts;
    /** @type {readonly string[]} */
    this.paths = [...texts.keys()].sort();
    /** TypeScript and JavaScript. */
    this.sources = this.paths.filter((file) => file.endsWith(".ts") || file.endsWith(".js"));
    this.packages = this.paths.flatMap((file) => /^packages\/([^/]+)\/package\.json$/.exec(file)?.[1] ?? []);
  }

  /** @param {string} file */
  has(file) {
    return this.texts.has(file);
  }

  /** @param {string} file */
  text(file) {
    const text = this.texts.get(file);
    if (text === undefined) throw new Error(`tidy: no such file: ${file}`);
    return text;
  }

  /**
   * @param {string} file
   * @returns {Token[]}
   */
  tokens(file) {
    const known = this.#tokens.get(file);
    if (known !== undefined) return known;
    const tokens = tokenize(this.text(file));
    this.#tokens.set(file, tokens);
    return tokens;
  }

  /** @param {string} file */
  json(file) {
    return JSON.parse(this.text(file));
  }
}

/**
 * @param {string} top
 * @returns {Tree}
 */
export function readTree(top) {
  const texts = new Map();
  /** @param {string} folder */
  const walk = (folder) => {
    for (const entry of readdirSync(path.join(top, folder), { withFileTypes: true })) {
      const name = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!skippedFolders.has(entry.name)) walk(name);
      } else if (readEndings.some((ending) => name.endsWith(ending)) || name === ".ci/run") {
        texts.set(name, readFileSync(path.join(top, name), "utf8"));
      }
    }
  };
  walk("");
  return new Tree(texts);
}
