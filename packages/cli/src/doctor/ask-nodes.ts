/** Asks each node how it is, reads its clock for a while, and asks again. Nobody who doesn't answer holds up the others. */
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { CheckupAnswer, ClockReading } from "@holdfast/server";
import { GetError, getJson } from "@holdfast/server/http-get";
import type { ClockSample } from "./clock-rates.js";
import type { AskError, NodeFacts } from "./cluster-facts.js";

export interface AskOptions {
  /** For one answer. */
  readonly timeoutMs: number;
  /** From the first reading of a clock to the last. */
  readonly measureMs: number;
}

/** Between two readings of a clock. */
const sampleEveryMs = 200;

/** Those that were named, and whom they know; a node that answers at two addresses is one. */
export async function askNodes(endpoints: readonly string[], options: AskOptions): Promise<readonly NodeFacts[]> {
  const named = await Promise.all([...new Set(endpoints)].map((endpoint) => ask(endpoint, options.timeoutMs)));
  const answered = new Set(named.flatMap(({ answer }) => answer?.id ?? []));
  const asked = new Set(endpoints);
  const known = new Map(named.flatMap(({ answer }) => (answer === null ? [] : membersOf(answer))));
  const missing = [...known].filter(([id, client]) => !answered.has(id) && !asked.has(client));
  const others = await Promise.all(missing.map(([, client]) => ask(client, options.timeoutMs)));
  return Promise.all(distinct([...named, ...others]).map((node) => observe(node, options)));
}

interface Asked {
  readonly endpoint: string;
  readonly answer: CheckupAnswer | null;
  readonly error: AskError | null;
}

async function ask(endpoint: string, timeoutMs: number): Promise<Asked> {
  try {
    return { endpoint, answer: await getJson<CheckupAnswer>(endpoint, "/v1/checkup", { timeoutMs }), error: null };
  } catch (error) {
    return { endpoint, answer: null, error: askErrorFor(error) };
  }
}

function askErrorFor(error: unknown): AskError {
  if (!(error instanceof GetError)) throw error;
  return { kind: error.kind === "silent" ? "silent" : "foreign", message: error.message };
}

function membersOf({ host, file }: CheckupAnswer): readonly (readonly [string, string])[] {
  const { voters = [], outgoing = [], learners = [] } = host?.configuration ?? {};
  const members = [...voters, ...outgoing, ...learners];
  // Before it is formed the file is all that it knows.
  return (members.length === 0 ? file.nodes : members).map(({ id, client }) => [id, client]);
}

function distinct(all: readonly Asked[]): readonly Asked[] {
  const seen = new Set<string>();
  return all.filter(({ endpoint, answer }) => {
    // A node whose directory was copied is another one under the same id: it must not be hidden.
    const key = answer === null ? endpoint : `${answer.id} ${answer.instance} ${answer.dataDirectory} ${answer.boot}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

async function observe({ endpoint, answer, error }: Asked, options: AskOptions): Promise<NodeFacts> {
  if (answer === null) return { endpoint, before: null, after: null, error, samples: [] };
  const samples = await sampleClock(endpoint, answer.boot, options);
  const last = await ask(endpoint, options.timeoutMs);
  return { endpoint, before: answer, after: last.answer, error: last.error, samples };
}

async function sampleClock(endpoint: string, boot: number | null, options: AskOptions): Promise<ClockSample[]> {
  const samples: ClockSample[] = [];
  const endMs = performance.now() + options.measureMs;
  for (;;) {
    const sample = await readClock(endpoint, boot, options.timeoutMs);
    if (sample !== null) samples.push(sample);
    const leftMs = endMs - performance.now();
    if (leftMs <= 0) return samples;
    await sleep(Math.min(sampleEveryMs, leftMs));
  }
}

/** Null when nothing came, or of another life of the node: its clock began anew. */
async function readClock(endpoint: string, boot: number | null, timeoutMs: number): Promise<ClockSample | null> {
  const sentMs = performance.now();
  try {
    const reading = await getJson<ClockReading>(endpoint, "/v1/clock", { timeoutMs });
    const receivedMs = performance.now();
    return reading.boot === boot ? { sentMs, receivedMs, monotonicMs: reading.monotonicMs } : null;
  } catch {
    return null;
  }
}
