import { strict as assert } from "node:assert";
import { describe, test } from "node:test";
import { NewerSnapshotError, VersionError } from "@holdfast/lock";
import { StorageError } from "@holdfast/storage";
import { UnknownCommandError, WireError } from "@holdfast/wire";
import { endingFor, oldCopyReason, removedReason } from "../src/endings.js";
import { exitCodes } from "../src/exit-codes.js";
import { FatalRefusals } from "../src/fatal-refusals.js";
import type { FatalRefusal } from "../src/fatal-refusals.js";
import { ListenError } from "../src/listening.js";
import type { MetPeer } from "../src/peer-links.js";
import type { Clock, PeerRefusal } from "../src/ports.js";

describe("exit codes", () => {
  test("are all different, named by themselves, and each has a sentence", () => {
    const all = Object.entries(exitCodes);
    assert.equal(new Set(all.map(([, { code }]) => code)).size, all.length);
    for (const [name, exit] of all) {
      assert.equal(exit.name, name);
      assert.match(exit.sentence, /^[A-Z].*\.$/);
    }
    assert.deepEqual(
      [exitCodes.ok.code, exitCodes.error.code, exitCodes.usage.code, exitCodes.storage.code],
      [0, 1, 2, 74],
    );
    assert.deepEqual([exitCodes.directoryInUse.code, exitCodes.notObtained.code, exitCodes.lost.code], [73, 75, 76]);
  });

  test("for each way to end", () => {
    const cases: readonly (readonly [unknown, string])[] = [
      [new StorageError("damaged", "x"), "storage"],
      [new StorageError("io", "x"), "storage"],
      [new StorageError("quarantined", "the data directory d was put into quarantine: the log has a hole"), "storage"],
      [
        new StorageError("quarantined", `the data directory d was put into quarantine: ${oldCopyReason}its term is 2`),
        "oldCopy",
      ],
      [
        new StorageError("quarantined", `the data directory d was put into quarantine: ${removedReason}n3 was removed`),
        "removed",
      ],
      [new StorageError("locked", "x"), "directoryInUse"],
      [new StorageError("other_node", "x"), "otherNode"],
      [new StorageError("newer_format", "x"), "newerFormat"],
      [new UnknownCommandError(99, null), "newerFormat"],
      [new WireError("newer_format", null, "has format 2"), "newerFormat"],
      [new NewerSnapshotError("the snapshot has format 2"), "newerFormat"],
      [new VersionError(2, "the cluster is at version 2"), "wrongVersion"],
      [
        new ListenError(
          { host: "127.0.0.1", port: 7201 },
          "peers",
          Object.assign(new Error("x"), { code: "EADDRINUSE" }),
        ),
        "portInUse",
      ],
      [new Error("x"), "internal"],
      ["x", "internal"],
    ];
    for (const [error, exit] of cases) assert.equal(endingFor(error).exit, exit, String(error));
    const inUse = new ListenError(
      { host: "::1", port: 7201 },
      "peers",
      Object.assign(new Error("x"), { code: "EADDRINUSE" }),
    );
    assert.equal(endingFor(inUse).sentence, "port 7201 for peers ([::1]:7201) is in use by another process");
  });
});

describe("refusals by peers", () => {
  function judge(clusterId: string | null, met: Readonly<Record<string, MetPeer>> = {}) {
    const fatal: FatalRefusal[] = [];
    let due: (() => void) | null = null;
    const clock = {
      setTimer: (_: number, run: () => void) => ((due = run), { cancel: () => (due = null) }),
    } as unknown as Clock;
    const refusals = new FatalRefusals({
      clock,
      clusterId: () => clusterId,
      met: () => new Map(Object.entries(met)),
      onFatal: (found) => fatal.push(found),
    });
    return { refusals, exits: () => fatal.map(({ exit }) => exit), pass: () => due?.() };
  }
  const refusal = (code: PeerRefusal["code"], from = "n2"): PeerRefusal => ({ from, code, problem: "x" });

  test("what a formed peer knows of this node is final; what an unformed one says, or may pass, is not", () => {
    for (const [code, exit] of [
      ["wrong_instance", "wrongInstance"],
      ["old_copy", "oldCopy"],
      ["removed", "removed"],
      ["wrong_version", "wrongVersion"],
    ] as const) {
      const formed = judge("c");
      formed.refusals.onRefused(refusal(code), true);
      formed.refusals.onRefused(refusal(code, "n3"), true);
      assert.deepEqual(formed.exits(), [exit], "once");
      const unformed = judge(null);
      unformed.refusals.onRefused(refusal(code), false);
      assert.deepEqual(unformed.exits(), []);
    }
    const stranger = judge(null);
    stranger.refusals.onRefused(refusal("unknown_node"), true);
    assert.deepEqual(stranger.exits(), ["unknownNode"]);
    const patient = judge("c");
    for (const code of ["unknown_node", "wrong_address", "incompatible", "unauthorized"] as const)
      patient.refusals.onRefused(refusal(code), true);
    patient.pass();
    assert.deepEqual(patient.exits(), []);
  });

  test("of two formed nodes that don't know each other the one without friends ends", () => {
    const stray = judge("x");
    stray.refusals.onRefused(refusal("wrong_cluster"), true);
    assert.deepEqual(stray.exits(), [], "the others may still come");
    stray.refusals.onRefused(refusal("wrong_cluster", "n3"), true);
    stray.pass();
    assert.deepEqual(stray.exits(), ["wrongCluster"]);
    const versions = { min: 1, max: 1 };
    const member = judge("c", {
      n3: { instance: "i", clusterId: "c", versions },
      n4: { instance: "j", clusterId: null, versions },
    });
    member.refusals.onRefused(refusal("wrong_cluster", "n1"), true);
    member.pass();
    member.refusals.onRefused(refusal("wrong_cluster", "n1"), true);
    member.pass();
    assert.deepEqual(member.exits(), [], "one stray node doesn't end a cluster");
    const alone = judge("c");
    alone.refusals.onRefused(refusal("wrong_cluster", "n1"), true);
    alone.pass();
    assert.deepEqual(alone.exits(), [], "nor its last member, while the others are being restarted");
    const unformed = judge(null);
    unformed.refusals.onRefused(refusal("wrong_cluster"), true);
    assert.deepEqual(unformed.exits(), ["wrongCluster"], "nothing to lose: at once");
  });

  test("nothing is decided after the end", () => {
    const over = judge("x");
    over.refusals.onRefused(refusal("wrong_cluster"), true);
    over.refusals.stop();
    over.pass();
    over.refusals.onRefused(refusal("old_copy"), true);
    assert.deepEqual(over.exits(), []);
  });
});
