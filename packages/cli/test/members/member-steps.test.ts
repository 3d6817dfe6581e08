import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HoldfastError } from "@holdfast/client";
import { addressesOf, FakeMembers, refuse } from "./fake-members.js";

/** Waits so many times, then does something. */
function afterWaits(...steps: readonly (() => void)[]): () => void {
  const left = [...steps];
  return () => {
    const step = left.shift();
    if (step === undefined) throw new Error("it waits too long");
    step();
  };
}

function loseAnswer(): never {
  throw new HoldfastError("unknown_outcome", "whether the request took effect is not known");
}

describe("member add", () => {
  it("asks the waiting node for its instance, adds it, and says how far it is", async () => {
    const cluster = new FakeMembers();
    cluster.waits("n4");
    const { steps } = cluster;
    await steps.add(addressesOf("n4"), null);
    assert.deepEqual(cluster.asked, [{ add: [{ ...addressesOf("n4"), instance: "i-n4" }] }]);
    cluster.edit("n4", { isUp: false });
    cluster.onWait = afterWaits(
      () => cluster.edit("n4", { isUp: true, percent: 62 }),
      () => {},
      () => cluster.edit("n4", { isCaughtUp: true }),
    );
    await steps.untilCaughtUp("n4");
    assert.deepEqual(cluster.lines, [
      "n4 is a learner",
      "n4: learner, not linked with the leader",
      "n4: learner at 62 %",
      "n4 has caught up",
    ]);
  });

  it("waits until the node is started", async () => {
    const cluster = new FakeMembers();
    cluster.onWait = afterWaits(
      () => {},
      () => cluster.waits("n4"),
    );
    await cluster.steps.add(addressesOf("n4"), null);
    assert.deepEqual(cluster.lines, ["n4: nobody answers at n4:7101", "n4 is a learner"]);
  });

  it("is done when it is repeated", async () => {
    const cluster = new FakeMembers();
    cluster.waits("n4");
    await cluster.steps.add(addressesOf("n4"), null);
    const { steps } = cluster;
    await steps.add(addressesOf("n4"), null);
    assert.deepEqual([cluster.asked.length, steps.hasChanged], [1, false]);
    await cluster.steps.add(addressesOf("n1"), null);
  });

  it("goes on when the answer is lost, whether it took effect or not", async () => {
    for (const tookEffect of [false, true]) {
      const cluster = new FakeMembers();
      cluster.waits("n4");
      let isFirst = true;
      cluster.onChange = () => {
        if (!isFirst) return;
        isFirst = false;
        if (tookEffect) cluster.apply({ add: [{ ...addressesOf("n4"), instance: "i-n4" }] });
        loseAnswer();
      };
      cluster.onWait = afterWaits(() => {});
      await cluster.steps.add(addressesOf("n4"), null);
      assert.deepEqual(cluster.roles().at(-1), "n4 learner");
      assert.equal(cluster.asked.length, tookEffect ? 1 : 2);
    }
  });

  it("refuses a node that isn't the one that was named, and an id that can't be taken", async () => {
    const failing = async (edit: (cluster: FakeMembers) => void, code: string, message: RegExp, id = "n4") => {
      const cluster = new FakeMembers();
      edit(cluster);
      await assert.rejects(cluster.steps.add(addressesOf(id), null), { code, message });
      assert.deepEqual(cluster.asked, []);
    };
    await failing((cluster) => cluster.waits("n4", { id: "n5" }), "node_differs", /is n5, not n4/);
    await failing((cluster) => cluster.waits("n4", { peer: "x:1" }), "node_differs", /started with --peer x:1/);
    await failing((cluster) => cluster.waits("n4", { clusterId: "d" }), "node_differs", /belongs to cluster d, not c/);
    await failing((cluster) => cluster.waits("n4", { clusterId: null }), "node_differs", /waits for no cluster/);
    await failing((cluster) => cluster.removed.push("n4"), "removed_id", /never comes back/);
    await failing((cluster) => cluster.edit("n3", { peer: "x:1" }), "address_differs", /--peer x:1/, "n3");
    await failing(
      (cluster) => cluster.waits("n3", { instance: "wiped" }),
      "instance_differs",
      /another data directory/,
      "n3",
    );
  });

  it("takes the instance by hand", async () => {
    const cluster = new FakeMembers();
    await cluster.steps.add(addressesOf("n4"), "i-by-hand");
    assert.equal(cluster.members.at(-1)?.instance, "i-by-hand");
    await cluster.steps.add(addressesOf("n4"), "i-by-hand");
    // A slip: the node that is there would wait for ever, and end with 80.
    await assert.rejects(cluster.steps.add(addressesOf("n4"), "i-n4"), { code: "instance_differs" });
    cluster.waits("n5");
    await assert.rejects(cluster.steps.add(addressesOf("n5"), "i-n6"), {
      code: "node_differs",
      message: /has the instance i-n5, not i-n6/,
    });
    assert.equal(cluster.asked.length, 1);
  });

  it("says why a learner isn't linked: nobody is there, or another directory", async () => {
    const cluster = new FakeMembers();
    cluster.apply({ add: [{ ...addressesOf("n4"), instance: "i-n4" }] });
    cluster.edit("n4", { isUp: false });
    cluster.onWait = afterWaits(
      () => cluster.waits("n4"),
      () => cluster.waits("n4", { instance: "wiped" }),
    );
    const refusal = { code: "instance_differs", exitCode: 1, message: /under another id$/ };
    await assert.rejects(cluster.steps.promote("n4", true), refusal);
    await assert.rejects(cluster.steps.untilCaughtUp("n4"), refusal);
    assert.match(
      cluster.lines[0] ?? "",
      /^n4: learner, and nobody answers at n4:7101: start it; if its directory is lost: holdfast member remove n4/,
    );
    assert.equal(cluster.lines[1], "n4: learner, not linked with the leader");
  });
});

describe("member promote and remove", () => {
  it("promote waits until the learner has caught up, also when the leader says so", async () => {
    const cluster = new FakeMembers();
    cluster.apply({ add: [{ ...addressesOf("n4"), instance: "i" }] });
    let refusals = 1;
    cluster.onChange = () => {
      if ((refusals -= 1) >= 0) refuse("not_caught_up", "n4");
    };
    cluster.onWait = afterWaits(
      () => cluster.edit("n4", { isCaughtUp: true }),
      () => {},
    );
    await cluster.steps.promote("n4", false);
    assert.deepEqual(cluster.asked, Array(2).fill({ promote: ["n4"], force: false }));
    const { steps } = cluster;
    await steps.promote("n4", false);
    assert.equal(steps.hasChanged, false);
    await assert.rejects(cluster.steps.promote("n9", false), { code: "unknown_member" });
  });

  it("remove waits for another change to end, names who is down, and is done when it is repeated", async () => {
    const cluster = new FakeMembers();
    cluster.isChanging = true;
    cluster.onWait = afterWaits(() => (cluster.isChanging = false));
    cluster.onChange = () => refuse("would_lose_quorum", "n2");
    await assert.rejects(cluster.steps.remove("n3", false), {
      code: "would_lose_quorum",
      exitCode: 1,
      message: /no majority: n2 not up.*; --force begins it all the same$/,
    });
    assert.deepEqual(cluster.lines, ["another change of members is under way"]);
    cluster.onChange = () => {};
    await cluster.steps.remove("n3", true);
    assert.deepEqual(cluster.asked.at(-1), { remove: ["n3"], force: true });
    const { steps } = cluster;
    await steps.remove("n3", false);
    assert.equal(steps.hasChanged, false);
    await assert.rejects(cluster.steps.remove("n9", false), { code: "unknown_member" });
  });
});

describe("member replace", () => {
  async function replace(cluster: FakeMembers, id = "n4", force = false): Promise<boolean> {
    const { steps } = cluster;
    await steps.checkReplaceable("n3", id);
    await steps.add(addressesOf(id), null);
    await steps.swap("n3", id, force);
    return steps.hasChanged;
  }

  it("is one change of voters, after the new node has caught up", async () => {
    const cluster = new FakeMembers();
    cluster.waits("n4");
    cluster.onWait = afterWaits(() => cluster.edit("n4", { isCaughtUp: true }));
    assert.equal(await replace(cluster), true);
    assert.deepEqual(cluster.asked.at(-1), { promote: ["n4"], remove: ["n3"], force: false });
    assert.deepEqual(cluster.roles(), ["n1 voter", "n2 voter", "n4 voter"]);
    assert.equal(await replace(cluster), false);
  });

  it("goes on from wherever it was interrupted", async () => {
    const states: readonly ((cluster: FakeMembers) => void)[] = [
      () => {},
      (cluster) => cluster.apply({ add: [{ ...addressesOf("n4"), instance: "i-n4" }] }),
      (cluster) => {
        cluster.apply({ add: [{ ...addressesOf("n4"), instance: "i-n4" }] });
        cluster.apply({ remove: ["n3"] });
      },
    ];
    for (const before of states) {
      const cluster = new FakeMembers();
      cluster.waits("n4");
      before(cluster);
      cluster.onWait = () => cluster.edit("n4", { isCaughtUp: true });
      assert.equal(await replace(cluster), true);
      assert.deepEqual(cluster.roles(), ["n1 voter", "n2 voter", "n4 voter"]);
      assert.deepEqual(cluster.removed, ["n3"]);
    }
  });

  it("waits for its own change, begun before it was interrupted, and has nothing left to do", async () => {
    const cluster = new FakeMembers();
    cluster.apply({ add: [{ ...addressesOf("n4"), instance: "i-n4" }] });
    cluster.edit("n4", { role: "voter" });
    cluster.edit("n3", { role: "outgoing" });
    cluster.isChanging = true;
    cluster.onWait = afterWaits(() => {
      cluster.apply({ remove: ["n3"] });
      cluster.isChanging = false;
    });
    assert.equal(await replace(cluster), false);
    assert.deepEqual(cluster.asked, []);
  });

  it("is no removal: of a node by itself, or by one that has its vote already", async () => {
    for (const force of [false, true]) {
      const cluster = new FakeMembers();
      await assert.rejects(replace(cluster, "n3", force), { code: "usage", exitCode: 2, message: /its own place/ });
      const refusal = { code: "already_member", exitCode: 1, message: /^n2 is a voter already, .* the place of n3/ };
      await assert.rejects(replace(cluster, "n2", force), refusal);
      assert.deepEqual([cluster.asked, cluster.removed], [[], []]);
    }
  });

  it("is refused when the new node gets its vote some other way meanwhile", async () => {
    const cluster = new FakeMembers();
    cluster.waits("n4");
    cluster.onWait = () => cluster.edit("n4", { isCaughtUp: true });
    cluster.onChange = () => {
      if (cluster.asked.length < 2) return;
      cluster.edit("n4", { role: "voter" });
      refuse("already_member", "n4");
    };
    await assert.rejects(replace(cluster), { code: "already_member" });
    assert.deepEqual(cluster.removed, []);
  });

  it("begins nothing for a node that isn't there", async () => {
    const cluster = new FakeMembers();
    cluster.waits("n4");
    cluster.edit("n3", { id: "n7" });
    await assert.rejects(replace(cluster), { code: "unknown_member" });
    assert.deepEqual(cluster.asked, []);
  });
});
