import assert from "node:assert/strict";
import { it } from "node:test";
import { readOptions } from "../options.js";

/** @param {string} line */
function read(line) {
  return readOptions(
    line.split(" ").filter((word) => word !== ""),
    { jobs: 2 },
  );
}

it("options say what is done with which mutants", () => {
  assert.deepEqual(read(""), {
    options: { mode: "find", only: "", first: 1, repeats: 3, jobs: 2 },
    problems: [],
  });
  assert.deepEqual(read("--only silence --first 7 --repeats 1 --jobs=4"), {
    options: { mode: "find", only: "silence", first: 7, repeats: 1, jobs: 4 },
    problems: [],
  });
  assert.equal(read("--check").options.mode, "check");
  assert.equal(read("--check --compile").options.mode, "compile");
  assert.deepEqual(read("--help --nonsense").problems, []);
  assert.equal(read("--help").options.mode, "help");
});

it("options that are wrong, or would have no effect, are refused all at once", () => {
  const rows = {
    "--nonsense": ["unknown option --nonsense"],
    "stray --only": ["stray word stray", "--only needs a value"],
    "--jobs --check": ["--jobs needs a value"],
    "--check=yes": ["--check takes no value"],
    "--first 1 --first 2": ["--first is given twice"],
    "--jobs 0 --repeats x": ["--repeats x is no whole number from 1 on", "--jobs 0 is no whole number from 1 on"],
    "--compile": ["--compile needs --check"],
    "--check --first 2": ["--first has no effect with --check"],
  };
  for (const [line, problems] of Object.entries(rows)) assert.deepEqual(read(line).problems, problems, line);
});
