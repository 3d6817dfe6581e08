import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { partNames, peerNames, readOptions, usage } from "../options.js";

const read = (/** @type {string[]} */ ...args) => readOptions(args, { dir: "/tmp" });

describe("options of the comparison", () => {
  it("have defaults", () => {
    const { options, problems } = read();
    assert.deepEqual(problems, []);
    assert.deepEqual(options, {
      parts: ["cycles"],
      peers: peerNames,
      namesPeers: false,
      rounds: 5,
      seconds: 5,
      trials: 50,
      scale: 1,
      dir: "/tmp",
      isJson: false,
      isWritten: false,
      isHelp: false,
    });
  });

  it("name parts and peers, parts in the order in which they run", () => {
    const { options, problems } = read("--parts", "failover,cycles", "--peers=redis", "--scale", ".25", "--json");
    assert.deepEqual(problems, []);
    assert.deepEqual(options.parts, ["cycles", "failover"]);
    assert.deepEqual(options.peers, ["redis"]);
    assert.equal(options.namesPeers, true);
    assert.equal(options.scale, 0.25);
    assert.equal(options.isJson, true);
    assert.deepEqual(read("--parts", "all").options.parts, partNames);
    assert.deepEqual(read("--peers", "none").options.peers, []);
  });

  it("are refused all at once, each by its name", () => {
    const { problems } = read(
      "--parts",
      "cycles,x",
      "--rounds",
      "0",
      "--seconds",
      "1.5",
      "--scale",
      "2",
      "--odd",
      "word",
    );
    assert.deepEqual(problems, [
      "unknown option --odd",
      "stray word word",
      `--parts: "x" is none of ${partNames.join(", ")}`,
      "--rounds 0 is no whole number from 1 to 1000",
      "--seconds 1.5 is no whole number from 1 to 3600",
      "--scale 2 is no number above 0, up to 1",
    ]);
  });

  it("are given once, with a value where one belongs", () => {
    assert.deepEqual(read("--rounds", "1", "--rounds", "2").problems, ["--rounds is given twice"]);
    assert.deepEqual(read("--dir").problems, ["--dir needs a value"]);
    assert.deepEqual(read("--dir=").problems, ["--dir needs a value"]);
    assert.deepEqual(read("--dir", "--json").problems, ["--dir needs a value"]);
    assert.deepEqual(read("--json=yes").problems, ["--json takes no value"]);
    assert.deepEqual(read("--peers", "etcd,etcd").problems, ["--peers names one twice"]);
  });

  it("refuse numbers that only look like some", () => {
    for (const text of ["", "-1", "1e3", "0x10", " 5", "1001"])
      assert.equal(read(`--rounds=${text}`).problems.length, 1, text);
    for (const text of ["0", "0.0", "1.1", "NaN", "-0.5", "1e-3"])
      assert.equal(read(`--scale=${text}`).problems.length, 1, text);
  });

  it("are all explained, whatever else was wrong", () => {
    assert.equal(read("--help", "--odd").options.isHelp, true);
    assert.deepEqual(read("--help", "--odd").problems, []);
    for (const name of [
      ...partNames,
      "--peers",
      "--rounds",
      "--seconds",
      "--trials",
      "--scale",
      "--dir",
      "--json",
      "--write",
    ])
      assert.ok(usage.includes(name), name);
  });
});
