import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readCommand } from "../src/command-line.js";

function problemsOf(...words: readonly string[]): readonly string[] {
  const read = readCommand(words);
  return "problems" in read ? read.problems : [];
}

describe("the command line", () => {
  it("says which scenarios, on which network, in which length", () => {
    const run = { kind: "run", mode: "auto", isFast: false, nodes: null, out: null } as const;
    const named = { ...run, choice: { kind: "named", names: ["a", "b"] }, isFast: true, nodes: 5 };
    assert.deepEqual(readCommand(["--scenario", "a,b", "--fast", "--nodes", "5"]), { command: named });
    const drawn = { kind: "random", minutes: 30, seed: 7 };
    assert.deepEqual(readCommand(["--random", "--minutes", "30", "--seed", "7"]), {
      command: { ...run, choice: drawn },
    });
    assert.deepEqual(readCommand(["--list"]), { command: { kind: "list" } });
    assert.deepEqual(readCommand(["--table", "a,b"]), { command: { kind: "table", folders: ["a", "b"] } });
  });

  it("has the short selection in its short form", () => {
    const read = readCommand(["--selection", "ci"]);
    assert.ok("command" in read && read.command.kind === "run" && read.command.isFast);
  });

  it("tells what is wrong with it by the option's name", () => {
    assert.match(problemsOf().join(), /one of --scenario/);
    assert.match(problemsOf("--all", "--file", "x").join(), /one of --scenario/);
    assert.match(problemsOf("--all", "--seed", "1").join(), /--minutes and --seed/);
    assert.match(problemsOf("--all", "--mode", "wifi").join(), /--mode: wifi/);
    assert.match(problemsOf("--all", "--nodes", "4").join(), /--nodes: 4/);
    assert.match(problemsOf("--selection", "all").join(), /--selection: .* all/);
    assert.match(problemsOf("--random", "--minutes", "0").join(), /--minutes: 0/);
    assert.match(problemsOf("--random", "--seed", "x").join(), /--seed: x/);
    assert.match(problemsOf("--explode").join(), /--explode/);
  });
});
