import assert from "node:assert/strict";
import { test } from "node:test";
import { tokenize } from "../tokens.js";

/** @param {string} source */
const words = (source) => tokenize(source).flatMap((token) => (token.kind === "word" ? [token.text] : []));

test("words in comments and strings are no words", () => {
  assert.deepEqual(words("a; // Date\n/* Date\n */ b(\"Date\", 'Date', `Date`);"), ["a", "b"]);
});

test("the expressions of a template are code, nested ones too", () => {
  assert.deepEqual(words("f(`x ${a} Date ${g(`${b}` + { c: 1 }.c)} y`)"), ["f", "a", "g", "b", "c", "c"]);
});

test("a slash after a value divides, elsewhere it begins a regular expression", () => {
  assert.deepEqual(words("x = a / b / c;"), ["x", "a", "b", "c"]);
  assert.deepEqual(words('x = /Date["\\/]/g; y'), ["x", "y"]);
  assert.deepEqual(words("return /[/]Date/.test(s)"), ["return", "test", "s"]);
  assert.deepEqual(words("(a) / b / c"), ["a", "b", "c"]);
});

test("a quote that is escaped or in a regular expression ends nothing", () => {
  assert.deepEqual(words('f("\\"", Date); /"/; g'), ["f", "Date", "g"]);
});

test("lines are counted through comments, strings and templates", () => {
  const tokens = tokenize("#!/usr/bin/env node\n/*\n*/\n`\n${a}\n`\nb");
  assert.deepEqual(
    tokens.filter((token) => token.kind === "word").map((token) => [token.text, token.line]),
    [
      ["a", 5],
      ["b", 7],
    ],
  );
});
