/** Rules on changes of the members, each broken by hand: found, and by its own name. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Configuration, Event, Index, LogBase, Message, Raft, Term } from "@holdfast/raft";
import { Changes } from "../src/invariants/changes.js";
import { Elections } from "../src/invariants/elections.js";
import { InvariantError } from "../src/invariants/invariant-error.js";
import type { RuleName } from "../src/invariants/invariant-error.js";
import { allowing, finding, finds, index, term } from "./invariants-breach.js";
import { configurationOf, electionTimeoutMs, FakeNode, FakeRaft, healthyWorld } from "./invariants-world.js";
import type { World } from "./invariants-world.js";

const joint = configurationOf(["n1", "n2"], ["n1", "n2", "n3"]);
const final = configurationOf(["n1", "n2"], [], ["n3"]);

/** n1's newest configuration is committed, and everybody knows. */
function settle(world: World, configuration: Configuration): void {
  world.node("n1").configure(configuration);
  world.look();
  world.replicate("n1");
  for (const { raft } of world.nodes.values()) {
    raft.configuration = world.node("n1").raft.configuration;
    const isVoter = [...configuration.voters, ...configuration.outgoing].some(({ id }) => id === raft.id);
    if (!isVoter) raft.role = "learner";
  }
  world.commit("n1");
  world.look();
  world.commit("n2", "n3");
  world.look();
}

function breaks(rule: RuleName, run: () => void): void {
  assert.throws(run, (error) => error instanceof InvariantError && error.rule === rule);
}

describe("a change of the members", () => {
  allowing("from a joint configuration to the final one", (world) => {
    settle(world, joint);
    settle(world, final);
    assert.deepEqual(world.watch.configuration, final);
  });

  it("leaves the one before in force until it is committed, for all that is known", () => {
    const world = healthyWorld();
    world.node("n1").configure(joint);
    world.look();
    assert.deepEqual(world.watch.liveConfigurations, [configurationOf(["n1", "n2", "n3"]), joint]);
  });

  finding("configuration", "other voters without a joint configuration, though majorities meet", (world) => {
    world.node("n1").configure(configurationOf(["n1", "n2"], [], ["n3"]));
  });

  finding("configuration", "a joint configuration with other outgoing voters than those in force", (world) => {
    world.node("n1").configure(configurationOf(["n1", "n2"], ["n1", "n2"], ["n3"]));
  });

  finding("configuration", "final voters that the joint configuration didn't name", (world) => {
    settle(world, joint);
    world.node("n1").configure(configurationOf(["n1", "n3"], [], ["n2"]));
  });

  finding("configuration", "a voter that is gone, and not listed as removed", (world) => {
    settle(world, joint);
    world.node("n1").configure(configurationOf(["n1", "n2"]));
  });

  finding("configuration", "a removal that is forgotten", (world) => {
    settle(world, joint);
    settle(world, final);
    world.node("n1").configure(configurationOf(["n1", "n2"], [], []));
  });

  for (const [name, configuration] of [
    ["bears in a snapshot the removals", final],
    ["is found where a snapshot lacks them", configurationOf(["n1", "n2"])],
  ] as const) {
    it(name, () => {
      const world = healthyWorld();
      settle(world, joint);
      settle(world, final);
      const { raft } = world.node("n2");
      const { lastIndex } = raft;
      raft.lastApplied = lastIndex;
      const position = { term: term(1), index: lastIndex };
      raft.base = { position, chain: raft.chainAt(lastIndex) ?? 0, configuration };
      if (configuration === final) world.look();
      else finds("configuration", world);
    });
  }
});

describe("what an added node's log begins with", () => {
  /** n4 starts with what a member has handed it. */
  function begin(world: World, configuration: Configuration): void {
    const n4 = new FakeNode("n4", { position: { term: term(0), index: index(0) }, chain: 0, configuration });
    n4.raft.role = "learner";
    world.nodes.set("n4", n4);
    world.start(n4);
  }

  allowing("a later configuration, once it is committed", (world) => {
    settle(world, joint);
    begin(world, joint);
  });

  finding(
    "configuration",
    "one that stands in the leader's log, and may be cut off again",
    (world) => {
      world.node("n1").configure(joint);
      world.look();
      begin(world, joint);
    },
    /n4 begins behind 0 with/,
  );
});

describe("an emptied directory", () => {
  it("takes no part under its old id", () => {
    const world = healthyWorld();
    world.watch.onStopped("n3");
    world.watch.onWiped("n3");
    world.look("n1");
    world.restart("n3");
    finds("wiped-node", world);
  });
});

/** Of n1, leader of term 2, whose log has entries of these terms. */
class Leader {
  readonly raft: FakeRaft;
  readonly changes: Changes;

  constructor(terms: readonly number[], committed: number, learnerEnd: number | null, learnerTerm: number = 2) {
    const base: LogBase = {
      position: { term: 0 as Term, index: 0 as Index },
      chain: 0,
      configuration: configurationOf(["n1", "n2", "n3"]),
    };
    this.raft = new FakeRaft("n1", base);
    this.raft.term = term(2);
    this.raft.role = "leader";
    this.raft.commitIndex = index(committed);
    const entry = { kind: "command", payload: new Uint8Array(), chain: 0 } as const;
    this.raft.entries = terms.map((of, at) => ({ ...entry, index: index(at + 1), term: term(of) }));
    const hardState = { term: term(2), votedFor: null };
    const last = { term: term(learnerTerm), index: index(learnerEnd ?? 0) };
    const disk = { hardState, last, termAt: () => null, chainAt: () => null };
    this.changes = new Changes("n1", () => (learnerEnd === null ? null : disk));
  }

  step(event: Event, append: boolean): void {
    const core = this.raft as unknown as Raft;
    this.changes.beforeStep(core, event);
    if (append) {
      const entry = { kind: "configuration", payload: new Uint8Array(), chain: 0, term: term(2) } as const;
      this.raft.entries = [...this.raft.entries, { ...entry, index: index(this.raft.entries.length + 1) }];
    }
    this.changes.afterStep(core, event);
  }

  change(promote: readonly string[]): void {
    const change = { add: [], promote, remove: [] };
    this.step({ kind: "changeMembers", nowMs: 0, id: 1, change, isForced: false }, true);
  }

  hear(from: string): void {
    const message: Message = { kind: "heartbeatAnswer", term: term(2), round: 1 };
    this.step({ kind: "received", nowMs: 0, from, message }, false);
  }
}

describe("a leader that changes the members", () => {
  it("has committed an entry of its own term", () => {
    new Leader([1, 2], 2, null).change([]);
    breaks("configuration", () => new Leader([1, 2], 1, null).change([]));
  });

  it("promotes who has caught up and answers", () => {
    const terms = Array.from({ length: 1_500 }, () => 2);
    const good = new Leader(terms, 1_500, 500);
    good.hear("n4");
    good.change(["n4"]);
    const behind = new Leader(terms, 1_500, 499);
    behind.hear("n4");
    breaks("configuration", () => behind.change(["n4"]));
    breaks("configuration", () => new Leader(terms, 1_500, 1_500).change(["n4"]));
    const former = new Leader([1, 1, 2], 3, 2, 1);
    former.hear("n4");
    breaks("configuration", () => former.change(["n4"]));
    const empty = new Leader(terms, 1_500, null);
    empty.hear("n4");
    breaks("configuration", () => empty.change(["n4"]));
  });
});

describe("elections while the members change", () => {
  const vote: Message = { kind: "vote", term: term(2), last: { term: term(1), index: index(3) }, transfer: false };
  const yes: Message = { kind: "voteAnswer", term: term(2), granted: true };

  /** Of n1, in term 2. */
  function candidate(configuration: Configuration, removed: readonly string[] = [], former: string | null = null) {
    const base: LogBase = { position: { term: 0 as Term, index: 0 as Index }, chain: 0, configuration };
    const raft = new FakeRaft("n1", base);
    raft.term = term(2);
    const elections = new Elections("n1", electionTimeoutMs, {
      isRemovedAt: (id) => removed.includes(id),
      hadVoteAt: (id) => id === former,
    });
    const step = (event: Event, role: FakeRaft["role"]): void => {
      elections.beforeStep(raft as unknown as Raft, event);
      raft.role = role;
      elections.afterStep(raft as unknown as Raft, event);
    };
    const hear = (from: string, message: Message, role: FakeRaft["role"] = raft.role): void =>
      step({ kind: "received", nowMs: 0, from, message }, role);
    const say = (to: string, message: Message): void => elections.checkSent(raft as unknown as Raft, to, message);
    return { tick: (role: FakeRaft["role"]) => step({ kind: "tick", nowMs: 0 }, role), hear, say };
  }

  it("are won by a majority of both sets of voters", () => {
    const both = configurationOf(["n1", "n4", "n5"], ["n1", "n2", "n3"]);
    const won = candidate(both);
    won.tick("candidate");
    won.hear("n4", yes);
    won.hear("n2", yes, "leader");
    const half = candidate(both);
    half.tick("candidate");
    half.hear("n5", yes);
    breaks("vote-quorum", () => half.hear("n4", yes, "leader"));
  });

  it("are for voters, and those who were not removed", () => {
    breaks("vote-quorum", () => candidate(configurationOf(["n2", "n3", "n4"])).tick("preCandidate"));
    // Its removal is in its log, and not committed.
    candidate(configurationOf(["n2", "n3"]), [], "n1").tick("preCandidate");
    breaks("removed-node", () => candidate(configurationOf(["n1", "n2"]), ["n1"]).tick("preCandidate"));
  });

  it("give nothing to, and take nothing from, a node that was removed", () => {
    for (const removed of ["n1", "n3"]) {
      const voter = candidate(configurationOf(["n1", "n2", "n3"]), [removed]);
      voter.hear("n3", vote);
      breaks("removed-node", () => voter.say("n3", yes));
    }
    const voter = candidate(configurationOf(["n1", "n2", "n3"]), ["n4"]);
    voter.hear("n3", vote);
    voter.say("n3", yes);
  });
});
