import { strict as assert } from "node:assert";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { randomInt } from "node:crypto";
import type { Configuration, Index, Message, Random, Term } from "@holdfast/raft";
import type { Logger } from "../src/ports.js";

/** Polls until `isTrue` holds; fails with `what` when it doesn't in time. */
export async function until(isTrue: () => boolean, what: string, limitMs = 5_000): Promise<void> {
  const endMs = performance.now() + limitMs;
  while (!isTrue()) {
    assert.ok(performance.now() < endMs, `not within ${limitMs} ms: ${what}`);
    await sleep(2);
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Ports that were free a moment ago, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

export const realRandom: Random = { integer: (below) => randomInt(below) };

export interface LogLine {
  readonly level: string;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly text: string;
}

export function memoryLogger(): Logger & { readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const write = (level: string) => (facts: object, text: string) => {
    lines.push({ level, facts: facts as Record<string, unknown>, text });
  };
  return { lines, debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

export function heartbeat(round: number, term = 1): Message {
  return { kind: "heartbeat", term: term as Term, commitIndex: 0 as Index, round };
}

export function append(index: number, payloadBytes: number, entries = 1, term = 1): Message {
  return {
    kind: "append",
    term: term as Term,
    previous: { term: 0 as Term, index: (index - 1) as Index },
    previousChain: 0,
    commitIndex: 0 as Index,
    entries: Array.from({ length: entries }, (_, offset) => ({
      index: (index + offset) as Index,
      term: term as Term,
      kind: "command",
      payload: new Uint8Array(payloadBytes).fill(index & 0xff),
      chain: 1,
    })),
  };
}

export function configurationOf(members: Readonly<Record<string, string>>): Configuration {
  return {
    voters: Object.entries(members).map(([id, instance]) => ({
      id,
      instance,
      peer: "127.0.0.1:1",
      client: "127.0.0.1:2",
    })),
    outgoing: [],
    learners: [],
    removed: [],
  };
}
