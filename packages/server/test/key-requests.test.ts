/** What a leader answers about sequencers and keys, call by call: a host without a log, whose quorum rounds the test confirms. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LockMachine } from "@holdfast/lock";
import type { Command, Effect } from "@holdfast/lock";
import type { Query, Refusal, ServerMessage } from "@holdfast/wire";
import type { GatewayHost } from "../src/gateway-host.js";
import { KeyRequests } from "../src/key-requests.js";
import { OpenQueries } from "../src/open-queries.js";
import type { ClientConnection } from "../src/ports.js";
import { SigningKeys } from "../src/signing-keys.js";
import { memoryLogger } from "./helpers.js";

const sequencer = `holdfast1.${"0".repeat(16)}.YQ.exclusive.-.1.${"A".repeat(86)}`;
const incompatible = { code: "incompatible", problem: "not yet" } as const;

class Connection implements ClientConnection {
  readonly id = 1;
  readonly remote = "test:1";
  readonly received: ServerMessage[] = [];

  send(message: ServerMessage): void {
    this.received.push(message);
  }

  pause(): void {}

  resume(): void {}
  close(): void {}

  take(): ServerMessage[] {
    return this.received.splice(0);
  }

  takeResult(): unknown {
    const [message, ...others] = this.take();
    assert.ok(message?.kind === "answer" && others.length === 0, JSON.stringify(message));
    return message.result;
  }

  takeRefusal(): Refusal["code"] | undefined {
    const [message, ...others] = this.take();
    return message?.kind === "refused" && others.length === 0 ? message.refusal.code : undefined;
  }
}

class Leader {
  readonly machine = new LockMachine();
  readonly log = memoryLogger();
  readonly proposed: { readonly command: Command; readonly refuse: (refusal: Refusal) => void }[] = [];
  readonly requests: KeyRequests;
  readonly keys: SigningKeys;
  isLeader = true;
  gated: Refusal | null = null;
  private rounds: { readonly onReady: () => void; readonly onFailed: () => void }[] = [];
  private index = 0;
  private seeds = 0;

  constructor(version = 2) {
    if (version > 1) this.apply({ kind: "setClusterVersion", version });
    this.keys = new SigningKeys({
      machine: () => this.machine,
      drawSeed: () => Buffer.alloc(32, (this.seeds += 1)),
      propose: (command, refuse) => this.proposed.push({ command, refuse }),
    });
    const host = {
      machine: this.machine,
      signingKeys: this.keys,
      leader: null,
      lastApplied: 7,
      gate: () => this.gated,
      gather: (onReady: () => void, onFailed: () => void) => this.rounds.push({ onReady, onFailed }),
      proposeOwn: (command: Command, refuse: (refusal: Refusal) => void) => this.proposed.push({ command, refuse }),
    };
    Object.defineProperty(host, "isLeader", { get: () => this.isLeader });
    const parts = host as unknown as GatewayHost;
    this.requests = new KeyRequests(parts, new OpenQueries(parts), this.log);
  }

  apply(command: Command): readonly Effect[] {
    this.index += 1;
    const effects = this.machine.apply(this.index, command);
    for (const effect of effects) if (effect.kind === "signingKeySet") this.requests.onKeySet(effect);
    return effects;
  }

  /** Applies what was proposed. */
  commit(): void {
    for (const { command } of this.proposed.splice(0)) this.apply(command);
  }

  confirm(): void {
    for (const { onReady } of this.rounds.splice(0)) onReady();
  }

  fail(): void {
    for (const { onFailed } of this.rounds.splice(0)) onFailed();
  }

  ask(query: Query): Connection {
    const connection = new Connection();
    this.requests.onQuery(connection, 5, query as Parameters<KeyRequests["onQuery"]>[2]);
    return connection;
  }

  rotate(principal: string): Connection {
    const connection = new Connection();
    this.requests.onRotate(connection, 6, principal);
    return connection;
  }

  begin(): string {
    this.keys.maybeBegin();
    this.commit();
    return this.machine.signingKey?.id ?? "";
  }
}

describe("the first key", () => {
  test("is proposed once, again after a refusal or in another term, and not below its version or beside another", () => {
    const leader = new Leader();
    leader.keys.maybeBegin();
    leader.keys.maybeBegin();
    assert.equal(leader.proposed.length, 1);
    leader.proposed[0]?.refuse({ code: "overloaded" });
    leader.keys.maybeBegin();
    leader.keys.onLeadershipLost();
    leader.keys.maybeBegin();
    assert.equal(leader.proposed.length, 3);
    leader.commit();
    assert.equal(leader.machine.publicKeys().length, 1, "the others came too late");
    leader.keys.onLeadershipLost();
    leader.keys.maybeBegin();
    const old = new Leader(1);
    old.keys.maybeBegin();
    assert.deepEqual([leader.proposed.length, old.proposed.length], [0, 0]);
    assert.deepEqual(
      leader.log.lines.map(({ text }) => text),
      ["the cluster has a key for sequencers"],
    );
  });

  test("is waited for by those who ask between its version and itself", () => {
    const leader = new Leader();
    const asking = leader.ask({ kind: "check", sequencer });
    const leaving = leader.ask({ kind: "check", sequencer });
    leader.confirm();
    assert.deepEqual(asking.take(), []);
    leader.requests.onClosed(leaving);
    leader.begin();
    assert.deepEqual(asking.takeResult(), { kind: "check", index: 7, verdict: "unknown_key", token: null });
    assert.deepEqual(leaving.take(), []);
    const late = new Leader();
    const waiting = late.ask({ kind: "check", sequencer });
    late.confirm();
    late.requests.onLeadershipLost();
    assert.equal(waiting.takeRefusal(), "not_leader");
  });
});

describe("questions", () => {
  test("wait for a round that confirms the leader", () => {
    const leader = new Leader();
    const key = leader.begin();
    const asking = leader.ask({ kind: "keys" });
    assert.deepEqual(asking.take(), []);
    leader.confirm();
    const keys = leader.machine.publicKeys();
    assert.deepEqual([asking.takeResult(), keys[0]?.id], [{ kind: "keys", index: 7, keys }, key]);
    const lost = leader.ask({ kind: "keys" });
    leader.fail();
    assert.equal(lost.takeRefusal(), "not_leader");
    leader.isLeader = false;
    assert.equal(leader.ask({ kind: "keys" }).takeRefusal(), "not_leader");
  });

  test("below the version there is no key, and the rest is refused", () => {
    const leader = new Leader(1);
    leader.gated = incompatible;
    const keys = leader.ask({ kind: "keys" });
    const others = [
      leader.ask({ kind: "check", sequencer }),
      leader.ask({ kind: "sequencer", session: 1, key: "k", of: 1, name: "a" }),
      leader.rotate("ada"),
    ];
    leader.confirm();
    assert.deepEqual(keys.takeResult(), { kind: "keys", index: 7, keys: [] });
    for (const each of others) assert.equal(each.takeRefusal(), "incompatible");
    assert.deepEqual(leader.proposed, []);
  });

  test("so many are open of a connection, and no more", () => {
    const leader = new Leader();
    const connection = new Connection();
    for (let at = 0; at < 1_025; at += 1) leader.requests.onQuery(connection, at, { kind: "keys" });
    assert.equal(connection.takeRefusal(), "overloaded");
    leader.confirm();
    assert.equal(connection.take().length, 1_024);
    leader.requests.onQuery(connection, 9, { kind: "keys" });
    assert.deepEqual(connection.take(), []);
  });
});

describe("a rotation", () => {
  test("makes a key in the place of the current one, is answered when that is applied, and stands in the log", () => {
    const leader = new Leader();
    const first = leader.begin();
    const asking = leader.rotate("ada");
    leader.confirm();
    assert.deepEqual(asking.take(), []);
    leader.commit();
    const [second] = leader.machine.publicKeys();
    assert.deepEqual(asking.take(), [{ kind: "keyRotated", id: 6, key: second?.id }]);
    const texts = leader.log.lines.slice(1).map(({ level, text, facts }) => ({ level, text, facts }));
    assert.deepEqual(texts, [
      {
        level: "warn",
        text: "asked to replace the key for sequencers",
        facts: { principal: "ada", remote: "test:1" },
      },
      {
        level: "warn",
        text: "the key for sequencers was replaced",
        facts: { key: second?.id, replaces: first, principal: "ada" },
      },
    ]);
    const { seed } = leader.machine.signingKey ?? { seed: "" };
    assert.ok(!JSON.stringify(leader.log.lines).includes(seed), "no seed is logged");
  });

  test("that another one overtook is answered with the key that there is", () => {
    const leader = new Leader();
    leader.begin();
    const [one, other] = [leader.rotate("ada"), leader.rotate("bob")];
    leader.confirm();
    leader.commit();
    assert.equal(leader.machine.publicKeys().length, 2);
    const key = leader.machine.signingKey?.id;
    for (const asking of [one, other]) assert.deepEqual(asking.take(), [{ kind: "keyRotated", id: 6, key }]);
  });

  test("that was refused, or whose leader is lost", () => {
    const leader = new Leader();
    leader.begin();
    const refused = leader.rotate("ada");
    leader.confirm();
    leader.proposed.splice(0)[0]?.refuse({ code: "overloaded" });
    assert.equal(refused.takeRefusal(), "overloaded");
    const lost = leader.rotate("ada");
    leader.confirm();
    leader.requests.onLeadershipLost();
    assert.equal(lost.takeRefusal(), "unknown_outcome");
    leader.commit();
    assert.deepEqual([refused.take(), lost.take()], [[], []]);
  });
});
