/** Changes of members asked by clients, over virtual nodes: from the request to the answer, and what the nodes do about it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { versionRange } from "@holdfast/lock";
import type { ClientMessage, MembersView, MemberView, Refusal } from "@holdfast/wire";
import { openSession } from "./virtual/opening.js";
import { electionTimeoutMs, instanceOf, memberOf, VirtualCluster } from "./virtual/virtual-cluster.js";
import type { VirtualClient, VirtualNode } from "./virtual/virtual-cluster.js";

type Change = Partial<Omit<Extract<ClientMessage, { kind: "changeMembers" }>, "kind" | "id">>;
type Answer = { readonly index: number } | Refusal;

let lastId = 0;

async function change(client: VirtualClient, asked: Change): Promise<Answer> {
  lastId += 1;
  const id = lastId;
  client.sendAll({ kind: "changeMembers", id, add: [], promote: [], remove: [], isForced: false, ...asked });
  const isAnswer = (message: { kind: string; id?: number | null }): boolean =>
    (message.kind === "membersChanged" || message.kind === "refused") && message.id === id;
  const answer = await client.expectAny(isAnswer);
  if (answer.kind === "membersChanged") return { index: answer.index };
  assert.ok(answer.kind === "refused");
  return answer.refusal;
}

async function done(client: VirtualClient, asked: Change): Promise<number> {
  const answer = await change(client, asked);
  assert.ok("index" in answer, JSON.stringify(answer));
  return answer.index;
}

async function members(client: VirtualClient): Promise<MembersView> {
  lastId += 1;
  const id = lastId;
  client.sendAll({ kind: "query", id, query: { kind: "members" } });
  const { result } = await client.expect("answer", (message) => message.id === id);
  assert.ok(result.kind === "members");
  return result.members;
}

async function member(client: VirtualClient, id: string): Promise<MemberView> {
  const view = (await members(client)).members.find((each) => each.id === id);
  assert.ok(view !== undefined, `${id} is a member`);
  return view;
}

async function caughtUp(cluster: VirtualCluster, client: VirtualClient, id: string): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    if ((await member(client, id)).isCaughtUp) return;
    await cluster.clock.pass(100);
  }
  assert.fail(`${id} has not caught up`);
}

function open(client: VirtualClient, at: number): Promise<number> {
  return openSession(client, at, 60_000);
}

async function openMany(client: VirtualClient, from: number, count: number): Promise<void> {
  for (let at = from; at < from + count; at += 1) await open(client, at);
}

function idsOf(view: MembersView): string[] {
  return view.members.map(({ id, role }) => `${id} ${role}`);
}

async function removed(cluster: VirtualCluster, node: VirtualNode): Promise<void> {
  await cluster.clock.until(`${node.id} knows that it was removed`, () => node.stopped !== null, 10_000);
  assert.deepEqual(node.stopped, { kind: "removed" });
  cluster.kill(node);
}

describe("members, asked by a client", () => {
  it("are listed by the leader alone: role, whether they are up, how far they are, what they run", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const [down, other] = cluster.nodes.filter((node) => node !== leader) as [VirtualNode, VirtualNode];
    cluster.kill(down);
    await cluster.clock.pass(2 * electionTimeoutMs);
    const view = await members(client);
    assert.equal(view.leader, leader.id);
    assert.deepEqual(idsOf(view), ["n1 voter", "n2 voter", "n3 voter"]);
    assert.deepEqual([view.removed, view.isChanging], [[], false]);
    const { isUp, versions } = await member(client, down.id);
    assert.deepEqual([isUp, versions], [false, null]);
    const { isUp: isOtherUp, percent, ...rest } = await member(client, other.id);
    assert.deepEqual([isOtherUp, percent, rest.versions], [true, 100, versionRange]);
    assert.deepEqual(
      [rest.peer, rest.client, rest.instance],
      [`${other.id}:7201`, `${other.id}:7101`, instanceOf(other.id)],
    );
    const elsewhere = cluster.client(other);
    elsewhere.sendAll({ kind: "query", id: 9_999, query: { kind: "members" } });
    const { refusal } = await elsewhere.expect("refused", ({ id }) => id === 9_999);
    assert.deepEqual(refusal, { code: "not_leader", leader: { id: leader.id, client: `${leader.id}:7101` } });
    assert.equal(((await change(elsewhere, { remove: ["n1"] })) as Refusal).code, "not_leader");
    assert.deepEqual(cluster.errors, []);
  });

  it("grow by a learner that is promoted once it has caught up, also by a snapshot", async () => {
    const cluster = new VirtualCluster({ snapshotEntries: 20, recordsPerPiece: 5 });
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    await openMany(client, 1, 60);
    assert.equal(leader.host?.status().snapshotIndex === 0, false, "the log's beginning is gone");
    await done(client, { add: [memberOf("n4")] });
    assert.deepEqual(idsOf(await members(client)).at(-1), "n4 learner");
    const early = await change(client, { promote: ["n4"] });
    assert.deepEqual(early, { code: "change_refused", reason: "not_caught_up", members: ["n4"] });
    assert.equal((await member(client, "n4")).percent, 0);
    const joined = cluster.join("n4");
    await caughtUp(cluster, client, "n4");
    assert.equal((await member(client, "n4")).percent, 100);
    await done(client, { promote: ["n4"] });
    assert.deepEqual(idsOf(await members(client)), ["n1 voter", "n2 voter", "n3 voter", "n4 voter"]);
    await cluster.converged();
    assert.deepEqual(
      joined.host?.status().nodes.map(({ id }) => id),
      ["n1", "n2", "n3", "n4"],
    );
    assert.deepEqual(cluster.errors, []);
  });

  it("grow by a node that begins below the first entry, though nobody has taken a snapshot yet", async () => {
    const cluster = new VirtualCluster({ firstIndex: 5_000 });
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    await openMany(client, 1, 3);
    assert.equal(leader.host?.status().snapshotIndex, 4_999, "there is none");
    await done(client, { add: [memberOf("n4")] });
    // A member that has compacted its log doesn't know where the cluster's began.
    cluster.join("n4", 1);
    await caughtUp(cluster, client, "n4");
    await cluster.converged();
    assert.deepEqual(cluster.errors, []);
  });

  it("are told to the clients that want to hear it, and to nobody else", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const plain = cluster.client(leader);
    const hearing = cluster.client(leader, 0, ["nodes"]);
    await hearing.expect("welcome");
    await done(plain, { add: [memberOf("n4")] });
    const { nodes } = await hearing.expect("nodes");
    assert.deepEqual(
      nodes.map(({ client }) => client),
      ["n1:7101", "n2:7101", "n3:7101", "n4:7101"],
    );
    await done(plain, { remove: ["n4"] });
    await hearing.expect("nodes", (message) => message.nodes.length === 3);
    assert.equal(
      plain.received.some(({ kind }) => kind === "nodes"),
      false,
    );
  });

  it("replace a dead node in one step, and its id is never taken again", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const dead = cluster.nodes.find((node) => node !== leader) as VirtualNode;
    cluster.kill(dead);
    await done(client, { add: [memberOf("n4")] });
    cluster.join("n4");
    await caughtUp(cluster, client, "n4");
    await done(client, { promote: ["n4"], remove: [dead.id] });
    const view = await members(client);
    assert.deepEqual(view.removed, [dead.id]);
    assert.equal(view.members.length, 3);
    const again = await change(client, { add: [{ ...memberOf(dead.id), instance: instanceOf("n99") }] });
    assert.deepEqual(again, { code: "change_refused", reason: "removed_id", members: [dead.id] });
    // The new majority serves without the third.
    const third = cluster.nodes.find(
      (node) => node.host !== null && node !== leader && node.id !== "n4",
    ) as VirtualNode;
    cluster.kill(third);
    assert.ok((await open(client, 77)) > 0);
    assert.deepEqual(cluster.errors, []);
  });

  it("are refused when those that are up would be no majority; the refusal names all that are down; force passes", async () => {
    const cluster = new VirtualCluster({ nodes: 5 });
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const [a, b, c] = cluster.nodes.filter((node) => node !== leader) as [VirtualNode, VirtualNode, VirtualNode];
    for (const node of [a, b]) cluster.kill(node);
    await cluster.clock.pass(2 * electionTimeoutMs);
    const refused = await change(client, { remove: [c.id] });
    const down = [a.id, b.id].sort();
    assert.deepEqual(refused, { code: "change_refused", reason: "would_lose_quorum", members: down });
    assert.equal((await members(client)).members.length, 5);
    // Forced, it begins, and nobody leads without a majority of the new voters: whether it ends is not known.
    assert.deepEqual(await change(client, { remove: [c.id], isForced: true }), { code: "unknown_outcome" });
    cluster.start(a);
    const asked = cluster.client(await cluster.leader());
    assert.ok((await open(asked, 1)) > 0);
    if ((await members(asked)).removed.length === 0) await done(asked, { remove: [c.id] });
    const again = cluster.client(await cluster.leader());
    await open(again, 2);
    assert.deepEqual((await members(again)).removed, [c.id]);
    assert.deepEqual(cluster.errors, []);
  });

  it("are refused a change that would only remove a voter, in whose place the new one is to come", async () => {
    const cluster = new VirtualCluster();
    const client = cluster.client(await cluster.leader());
    for (const isForced of [false, true]) {
      const itself = await change(client, { promote: ["n2"], remove: ["n2"], isForced });
      assert.deepEqual(itself, { code: "change_refused", reason: "named_twice", members: ["n2"] });
      const voter = await change(client, { promote: ["n2"], remove: ["n3"], isForced });
      assert.deepEqual(voter, { code: "change_refused", reason: "already_member", members: ["n2"] });
    }
    assert.deepEqual(idsOf(await members(client)), ["n1 voter", "n2 voter", "n3 voter"]);
    assert.deepEqual(cluster.errors, []);
  });

  it("are refused a node that can't be: no id is burnt by a slip", async () => {
    const cluster = new VirtualCluster();
    const client = cluster.client(await cluster.leader());
    const slips: readonly (readonly [object, RegExp])[] = [
      [{ id: "N6!" }, /"N6!" is no id/],
      [{ peer: "127.0.0.1:99999" }, /"127.0.0.1:99999" is not an address/],
      [{ client: "y" }, /"y" is not an address/],
      [{ instance: "zz" }, /"zz" is no instance/],
      [{ instance: "A".repeat(32) }, /is no instance/],
      [{ instance: "0".repeat(33) }, /is no instance/],
    ];
    for (const [slip, problem] of slips) {
      const refusal = await change(client, { add: [{ ...memberOf("n6"), ...slip }], isForced: true });
      assert.ok("code" in refusal && refusal.code === "invalid_argument", JSON.stringify(slip));
      assert.equal(refusal.argument, "add");
      assert.match(refusal.problem, problem);
    }
    await done(client, { add: [memberOf("n6")] });
    assert.deepEqual(cluster.errors, []);
  });

  it("a leader that removes itself answers, hands over, and ends", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const client = cluster.client(leader, 0, ["nodes"]);
    await open(client, 1);
    await done(client, { remove: [leader.id] });
    const hint = await client.expect("leader", (message) => message.leader !== null && message.leader.id !== leader.id);
    assert.ok(hint.leader?.client.endsWith(":7101"));
    await removed(cluster, leader);
    cluster.nodes.splice(cluster.nodes.indexOf(leader), 1);
    const next = await cluster.leader();
    const view = await members(cluster.client(next));
    assert.deepEqual([view.members.length, view.removed], [2, [leader.id]]);
    assert.deepEqual(cluster.errors, []);
  });

  it("a follower that is removed learns it from the log and ends; a learner too", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    await done(client, { add: [memberOf("n4")] });
    const learner = cluster.join("n4");
    await caughtUp(cluster, client, "n4");
    await done(client, { remove: ["n4"] });
    await removed(cluster, learner);
    const follower = cluster.nodes.find((node) => node !== leader && node !== learner) as VirtualNode;
    await done(client, { remove: [follower.id] });
    await removed(cluster, follower);
    assert.ok((await open(client, 5)) > 0);
    assert.deepEqual(cluster.errors, []);
  });

  it("a removed node that comes back, with its old log, disturbs nobody", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const node = cluster.nodes.find((each) => each !== leader) as VirtualNode;
    cluster.kill(node);
    await cluster.clock.pass(100);
    await done(client, { remove: [node.id] });
    const { term } = leader.host?.status() ?? { term: 0 };
    cluster.start(node);
    await cluster.clock.pass(20 * electionTimeoutMs);
    assert.equal(leader.host?.status().term, term);
    assert.equal(leader.host?.status().role, "leader");
    assert.ok((await open(client, 6)) > 0);
    assert.deepEqual(cluster.errors, []);
  });

  for (const victim of ["leader", "joining", "other"] as const) {
    it(`a change goes on after a restart of the ${victim} node in its middle`, async () => {
      const cluster = new VirtualCluster({ snapshotEntries: 20, recordsPerPiece: 5 });
      const leader = await cluster.leader();
      const client = cluster.client(leader);
      await openMany(client, 1, 40);
      await done(client, { add: [memberOf("n4")] });
      const joined = cluster.join("n4");
      const nodes = { leader, joining: joined, other: cluster.nodes.find((node) => node !== leader) as VirtualNode };
      await cluster.clock.pass(3);
      cluster.kill(nodes[victim], true, true);
      await cluster.clock.pass(200);
      cluster.start(nodes[victim]);
      const next = await cluster.leader();
      const again = cluster.client(next);
      await open(again, 500);
      await caughtUp(cluster, again, "n4");
      // The leader dies with the joint change in its log.
      again.sendAll({ kind: "changeMembers", id: 900, add: [], promote: ["n4"], remove: ["n1"], isForced: false });
      await cluster.clock.until("the change began", () => (next.host?.status().nodes.length ?? 0) >= 4, 1_000);
      await cluster.clock.pass(4);
      cluster.kill(next);
      await cluster.clock.pass(4 * electionTimeoutMs);
      if (next.id !== "n1") cluster.start(next);
      const last = await cluster.leader();
      const asked = cluster.client(last);
      await open(asked, 501);
      const view = await members(asked);
      // Whole or not at all, and whoever asks again gets it done.
      if (view.members.some(({ id, role }) => id === "n4" && role === "learner")) {
        await caughtUp(cluster, asked, "n4");
        await done(asked, { promote: ["n4"], remove: ["n1"] });
      }
      const asNow = cluster.client(await cluster.leader());
      await open(asNow, 502);
      assert.deepEqual(idsOf(await members(asNow)), ["n2 voter", "n3 voter", "n4 voter"]);
      assert.deepEqual(cluster.errors, []);
    });
  }
});
