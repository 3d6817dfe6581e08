import assert from "node:assert/strict";
import { test } from "node:test";
import { columns, facts, paintFor, plain } from "../src/output.js";

test("columns are aligned; numbers to the right", () => {
  assert.equal(
    columns(
      ["NODE", "TERM", "ROLE"],
      [
        ["n1", "7", "leader"],
        ["node2", "12", ""],
      ],
    ),
    "NODE   TERM  ROLE\nn1        7  leader\nnode2    12\n",
  );
});

test("facts stand below each other", () => {
  assert.equal(
    facts([
      ["name", "a"],
      ["token", "7"],
    ]),
    "name:  a\ntoken: 7\n",
  );
});

test("names from strangers can't steer the terminal, and show where they end", () => {
  assert.equal(plain("doc:42"), "doc:42");
  assert.equal(plain("\u001b[2Ja\nb"), "\\u001b[2Ja\\u000ab");
  assert.equal(plain("a\u202eb\ud800"), "a\\u202eb\\ud800");
  for (const text of ["", " a", "a ", "a  b", "-"]) assert.equal(plain(text), `"${text}"`);
});

test("colours change no column, and nothing without a terminal", () => {
  const rows = [
    ["n1", "7"],
    ["node2", "12"],
  ];
  const styleOf = (row: number, column: number): "red" | null => (row === 0 && column === 1 ? "red" : null);
  const painted = columns(["NODE", "TERM"], rows, { paint: (style, text) => `<${style}>${text}</>`, styleOf });
  assert.equal(painted, "<bold>NODE</>   <bold>TERM</>\nn1        <red>7</>\nnode2    12\n");
  assert.equal(painted.replace(/<[^>]*>/g, ""), columns(["NODE", "TERM"], rows));
  assert.equal(paintFor({ hasColours: false })("red", "a"), "a");
});
