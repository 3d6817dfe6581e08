/** Rules on single messages and proposals, each broken by hand: found, by its own name, and only then. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Event, Index, LogBase, Message, Output, Raft, Term } from "@holdfast/raft";
import { encodeCommand } from "@holdfast/wire";
import { LockMachine } from "@holdfast/lock";
import type { Command, SessionId } from "@holdfast/lock";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import { Answers } from "../src/invariants/answers.js";
import { Elections } from "../src/invariants/elections.js";
import { InvariantError } from "../src/invariants/invariant-error.js";
import type { RuleName } from "../src/invariants/invariant-error.js";
import { Rounds } from "../src/invariants/rounds.js";
import { index, term } from "./invariants-breach.js";
import { configurationOf, electionTimeoutMs, FakeRaft } from "./invariants-world.js";

const base: LogBase = {
  position: { term: 0 as Term, index: 0 as Index },
  chain: 0,
  configuration: configurationOf(["n1", "n2", "n3"]),
};
const last = { term: term(1), index: index(3) };
const preVote = (of: number): Message => ({ kind: "preVote", term: term(of), last });
const vote = (of: number, transfer = false): Message => ({ kind: "vote", term: term(of), last, transfer });
const granted = (kind: "preVoteAnswer" | "voteAnswer", of: number): Message => ({
  kind,
  term: term(of),
  granted: true,
});
const heartbeat = (of: number): Message => ({ kind: "heartbeat", term: term(of), commitIndex: index(0), round: 1 });

function breaks(rule: RuleName, run: () => void): void {
  assert.throws(run, (error) => error instanceof InvariantError && error.rule === rule);
}

/** n2, a follower of n1 in term 1. */
class Follower {
  readonly raft = new FakeRaft("n2", base);
  readonly elections = new Elections("n2", electionTimeoutMs);
  nowMs = 1_000;

  constructor() {
    this.raft.term = term(1);
    this.hear("n1", heartbeat(1), () => void (this.raft.leader = "n1"));
  }

  get core(): Raft {
    return this.raft as unknown as Raft;
  }

  step(event: Event, change: () => void = () => undefined): void {
    this.elections.beforeStep(this.core, event);
    change();
    this.elections.afterStep(this.core, event);
  }

  hear(from: string, message: Message, change?: () => void): void {
    this.step({ kind: "received", nowMs: this.nowMs, from, message }, change);
  }

  say(to: string, message: Message): void {
    this.elections.checkSent(this.core, to, message);
  }
}

describe("pre-vote", () => {
  it("forbids a campaign that no quorum would vote for", () => {
    const node = new Follower();
    breaks("pre-vote", () => node.say("n1", vote(2)));
    node.hear("n3", granted("preVoteAnswer", 3));
    breaks("pre-vote", () => node.say("n1", vote(2)));
    node.hear("n3", { kind: "preVoteAnswer", term: term(2), granted: false });
    breaks("pre-vote", () => node.say("n1", vote(2)));
    node.hear("n3", granted("preVoteAnswer", 2));
    node.say("n1", vote(2));
  });

  it("forbids one in the place of a leader that did not ask for it", () => {
    const node = new Follower();
    breaks("pre-vote", () => node.say("n3", vote(2, true)));
    node.hear("n3", { kind: "timeoutNow", term: term(1) });
    breaks("pre-vote", () => node.say("n3", vote(2, true)));
    node.hear("n1", { kind: "timeoutNow", term: term(1) });
    node.say("n3", vote(2, true));
  });
});

describe("stickiness", () => {
  for (const kind of ["preVote", "vote"] as const) {
    const question = kind === "preVote" ? preVote(2) : vote(2);
    const answer = granted(`${kind}Answer`, 2);

    it(`forbids a ${kind} while the leader is heard, and no longer`, () => {
      const node = new Follower();
      node.nowMs += electionTimeoutMs - 1;
      node.hear("n3", question);
      breaks("stickiness", () => node.say("n3", answer));
      node.nowMs += 1;
      node.hear("n3", question);
      node.say("n3", answer);
    });

    it(`allows a ${kind} when the leader is gone`, () => {
      const node = new Follower();
      node.step({ kind: "peerGone", nowMs: node.nowMs, peer: "n1" });
      node.hear("n3", question);
      node.say("n3", answer);
    });
  }

  it("forbids to follow a request for votes into a later term, unless the leader has asked for it", () => {
    const rise = (node: Follower) => (): void => void (node.raft.term = term(2));
    const sticky = new Follower();
    breaks("stickiness", () => sticky.hear("n3", vote(2), rise(sticky)));
    const asked = new Follower();
    asked.hear("n3", vote(2, true), rise(asked));
    asked.say("n3", granted("voteAnswer", 2));
  });

  it("forbids a leader to give pre-votes", () => {
    const node = new Follower();
    node.raft.role = "leader";
    node.hear("n3", preVote(2));
    breaks("stickiness", () => node.say("n3", granted("preVoteAnswer", 2)));
  });
});

describe("votes", () => {
  for (const kind of ["preVote", "vote"] as const) {
    it(`allow no ${kind} for a log that is behind`, () => {
      const node = new Follower();
      node.nowMs += electionTimeoutMs;
      const entry = { kind: "command", payload: new Uint8Array() } as const;
      const entries = [1, 1, 1, 1].map((of, at) => ({ ...entry, index: index(at + 1), term: term(of), chain: at }));
      node.raft.entries = entries;
      node.hear("n3", kind === "preVote" ? preVote(2) : vote(2));
      breaks("leader-completeness", () => node.say("n3", granted(`${kind}Answer`, 2)));
      // A later term counts for more than a longer log.
      node.raft.entries = entries.slice(0, 2).concat(entries.slice(2, 3).map((each) => ({ ...each, term: term(2) })));
      node.hear("n3", kind === "preVote" ? preVote(3) : vote(3));
      breaks("leader-completeness", () => node.say("n3", granted(`${kind}Answer`, 3)));
      node.raft.entries = entries.slice(0, 3);
      node.hear("n3", kind === "preVote" ? preVote(4) : vote(4));
      node.say("n3", granted(`${kind}Answer`, 4));
    });
  }
});

/** n1, which leads in term 1: its no-op is entry 1. */
class Leader {
  readonly raft = new FakeRaft("n1", base);
  readonly rounds = new Rounds("n1", electionTimeoutMs);
  readonly machine = new LockMachine();
  lastApplied = 1;
  readonly answers: Answers;
  nowMs = 1_000;
  transferTo: string | null = null;
  #round = 0;

  constructor() {
    Object.assign(this.raft, { role: "leader", term: term(1), status: () => ({ transferTo: this.transferTo }) });
    this.append();
    const leader = this;
    this.answers = new Answers(this.rounds, {
      machine: this.machine,
      get lastApplied() {
        return leader.lastApplied;
      },
    });
  }

  append(of: number = this.raft.term): void {
    const at = (this.raft.lastIndex + 1) as Index;
    const payload = new Uint8Array();
    this.raft.entries = [...this.raft.entries, { index: at, term: term(of), kind: "command", payload, chain: at }];
  }

  step(event: Event): void {
    this.rounds.afterStep(this.raft as unknown as Raft, event);
  }

  ask(id: number): void {
    this.step({ kind: "confirm", nowMs: this.nowMs, id });
  }

  /** A round's heartbeats leave, and so many peers answer it. */
  beginRound(answers = 1): void {
    this.#round += 1;
    const message: Message = { kind: "heartbeat", term: this.raft.term, commitIndex: index(0), round: this.#round };
    this.output({ send: [{ to: "n2", message }] });
    for (const from of ["n2", "n3"].slice(0, answers)) this.answerRound(from);
  }

  answerRound(from: string): void {
    const message: Message = { kind: "heartbeatAnswer", term: this.raft.term, round: this.#round };
    this.step({ kind: "received", nowMs: this.nowMs, from, message });
  }

  confirm(id: number, at = 1): void {
    this.output({ confirmed: [{ id, index: index(at) }] });
  }

  /** A round from its asking to its end. */
  pass(id: number, at = 1): void {
    this.ask(id);
    this.beginRound();
    this.confirm(id, at);
  }

  output(parts: Partial<Output>): void {
    const output = { confirmed: [], send: [], sendAfterPersist: [], ...parts } as unknown as Output;
    this.rounds.afterOutput(this.raft as unknown as Raft, output);
  }

  propose(command: Command): void {
    const proposal = { id: 1, payload: encodeCommand(command), reserved: true, decidedInTerm: term(1) };
    this.append();
    this.step({ kind: "propose", nowMs: this.nowMs, proposal });
  }
}

const session = 7 as SessionId;
const ids = [session];

describe("quorum rounds", () => {
  it("forbid an expiry before a round that began when the silence was heard out", () => {
    const leader = new Leader();
    const expire = (): void => leader.propose({ kind: "expireSessions", ids });
    leader.ask(1);
    breaks("quorum-round", expire);
    leader.beginRound();
    leader.propose({ kind: "suspectSessions", ids, eighths: 8 });
    leader.confirm(1);
    breaks("quorum-round", expire);
    leader.pass(2);
    expire();
    // A round of a former leadership says nothing.
    leader.raft.term = term(3);
    breaks("quorum-round", expire);
  });

  it("forbid to confirm anything while leadership is handed over", () => {
    const leader = new Leader();
    leader.ask(1);
    leader.beginRound();
    leader.transferTo = "n2";
    leader.step({ kind: "transfer", nowMs: leader.nowMs, to: "n2" });
    // It had ended before.
    leader.confirm(1);
    breaks("quorum-round", () => leader.pass(2));
    leader.nowMs += electionTimeoutMs;
    leader.pass(3);
  });

  it("know a transfer that is asked for while the one before is ending for none", () => {
    const leader = new Leader();
    const ask = (): void => leader.step({ kind: "transfer", nowMs: leader.nowMs, to: "n2" });
    leader.transferTo = "n2";
    ask();
    leader.nowMs += electionTimeoutMs;
    leader.output({});
    ask();
    leader.output({});
    leader.transferTo = null;
    leader.pass(1);
    leader.transferTo = "n2";
    ask();
    leader.output({});
    breaks("quorum-round", () => leader.pass(2));
  });

  it("forbid to confirm anything while a leader that leaves hands over, which nobody has asked for", () => {
    const leader = new Leader();
    leader.transferTo = "n2";
    leader.step({ kind: "persisted", nowMs: leader.nowMs, number: 1 });
    leader.output({});
    breaks("quorum-round", () => leader.pass(1));
  });

  it("forbid to confirm without a quorum's answers to a round that began since", () => {
    const leader = new Leader();
    leader.beginRound();
    leader.ask(1);
    breaks("quorum-round", () => leader.confirm(1));
    leader.beginRound(0);
    breaks("quorum-round", () => leader.confirm(1));
    leader.beginRound();
    leader.confirm(1);
  });

  it("count a quorum of the configuration that was in force when it had answered, for this output alone", () => {
    const leader = new Leader();
    const configuration = configurationOf(["n1", "n2", "n3", "n4", "n5"]);
    const change = (): void => {
      Object.assign(leader.raft, { configuration });
      leader.step({ kind: "persisted", nowMs: leader.nowMs, number: 1 });
    };
    leader.ask(1);
    leader.beginRound();
    change();
    leader.confirm(1);
    breaks("quorum-round", () => leader.pass(2));
    leader.ask(3);
    leader.beginRound(2);
    leader.confirm(3);
  });

  it("count no answer for a configuration that another one had taken the place of", () => {
    const leader = new Leader();
    leader.ask(1);
    leader.beginRound(0);
    Object.assign(leader.raft, { configuration: configurationOf(["n2", "n3", "n4"]) });
    leader.step({ kind: "persisted", nowMs: leader.nowMs, number: 1 });
    leader.answerRound("n2");
    breaks("quorum-round", () => leader.confirm(1));
  });

  it("forbid to confirm before an entry of the own term is committed", () => {
    const leader = new Leader();
    leader.raft.term = term(2);
    breaks("quorum-round", () => leader.pass(1));
    leader.append();
    leader.pass(2, 2);
  });
});

describe("answers", () => {
  const questions: readonly (readonly [ClientMessage, ServerMessage])[] = [
    [{ kind: "query", id: 1, query: { kind: "inspect", name: "a" } }, { kind: "answer", id: 1 } as ServerMessage],
    [{ kind: "resume", session, key: "k" }, { kind: "resumed", session } as ServerMessage],
    [
      { kind: "keepalive", session, number: 3 },
      { kind: "acknowledged", session, number: 3 },
    ],
  ];

  for (const [question, answer] of questions) {
    it(`to a ${question.kind} need a round that began since it was read, and its state`, () => {
      const leader = new Leader();
      leader.pass(1);
      leader.answers.onRead(1, question);
      breaks("quorum-round", () => leader.answers.checkSaid(1, answer));
      leader.append();
      leader.pass(2, 2);
      breaks("quorum-round", () => leader.answers.checkSaid(1, answer));
      leader.lastApplied = 2;
      leader.answers.checkSaid(1, answer);
    });
  }

  it("of a node about itself need none", () => {
    const leader = new Leader();
    leader.answers.onRead(1, { kind: "query", id: 1, query: { kind: "status" } });
    leader.answers.checkSaid(1, { kind: "answer", id: 1 } as ServerMessage);
  });

  it("renew no session whose silence is counted, or about to be", () => {
    const leader = new Leader();
    leader.machine.apply(7, { kind: "openSession", key: "k", ttlMs: 10_000, info: "" });
    leader.answers.onRead(1, { kind: "keepalive", session, number: 1 });
    leader.pass(1);
    const renew = (): void => leader.answers.checkSaid(1, { kind: "acknowledged", session, number: 1 });
    renew();
    leader.propose({ kind: "suspectSessions", ids, eighths: 4 });
    breaks("counted-silence", renew);
    leader.machine.apply(8, { kind: "suspectSessions", ids, eighths: 4 });
    leader.lastApplied = leader.raft.lastIndex;
    breaks("counted-silence", renew);
    leader.machine.apply(9, { kind: "renewSuspects", ids });
    renew();
  });
});
