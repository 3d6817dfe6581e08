// A strict consumer in Node: what compiles, what must not, and what things are. Compiled by test/packaging/packages.test.ts, never run.
import { ClientMetrics, connect, HoldfastError, LockLostError } from "@holdfast/client";
import type {
  AcquireDiagnostic,
  AcquireOptions,
  ErrorCode,
  Fence,
  Holdfast,
  Lock,
  LockDiagnostic,
  LockLossReason,
  LockState,
  LockView,
  OncePerResult,
  ReleaseResult,
  Term,
  WatchEvent,
  currentFence,
} from "@holdfast/client";
import { prometheusFenceMetrics } from "@holdfast/fence";
import { postgresGuard } from "@holdfast/fence/postgres";
import { decodeServerFrame, encodeClientFrame } from "@holdfast/wire";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function is<A, B>(_equal: Equal<A, B>): void {}

const metrics = new ClientMetrics();

export async function use(): Promise<void> {
  await using holdfast = await connect({ endpoints: ["a:1", "b:1"], ttlMs: 10_000, metrics, heldLongMs: 60_000 });
  is<typeof holdfast, Holdfast>(true);
  await using lock = await holdfast.acquire(["a", "b"], { mode: "shared", signal: AbortSignal.timeout(1_000) });
  is<typeof lock, Lock>(true);
  is<typeof lock.token, number>(true);
  is<typeof lock.slot, number | null>(true);
  is<typeof lock.state, LockState>(true);
  is<typeof lock.signal, AbortSignal>(true);
  is<typeof lock.lossReason, LockLossReason | null>(true);
  is<ReturnType<typeof lock.fence>, Fence>(true);
  is<ReturnType<typeof currentFence>, Fence>(true);
  const released = await lock.release({ afterMs: 5 });
  is<typeof released, ReleaseResult>(true);
  is<ReleaseResult, "released" | "already-released" | "already-lost">(true);

  const tried = await holdfast.tryAcquire("a");
  is<typeof tried, Lock | null>(true);
  // @ts-expect-error it may be null
  await tried.release();
  // @ts-expect-error tryAcquire doesn't wait
  await holdfast.tryAcquire("a", { waitMs: 5 });
  // @ts-expect-error a misspelt option
  await holdfast.acquire("a", { ttl: 5 });
  // @ts-expect-error no mode of a lock
  await holdfast.acquire("a", { mode: "slot" });
  // @ts-expect-error a semaphore's place has no mode
  await holdfast.semaphore("a", { slots: 2 }).acquire({ mode: "shared" });
  // @ts-expect-error slots are needed
  holdfast.semaphore("a", {});
  // @ts-expect-error read-only
  lock.token = 5;

  const plain = await holdfast.request("a", (given) => {
    is<typeof given, Lock>(true);
    return 5;
  });
  is<typeof plain, number>(true);
  const maybe = await holdfast.request("a", { ifAvailable: true }, async (given) => {
    is<typeof given, Lock | null>(true);
    return given === null ? "busy" : "done";
  });
  is<typeof maybe, "busy" | "done">(true);
  const led = await holdfast.lead("a", async (term) => {
    is<typeof term, Term>(true);
    return term.token;
  });
  is<typeof led, number>(true);
  const once = await holdfast.oncePer("a", 1_000, () => "sent");
  is<typeof once, OncePerResult<string>>(true);
  if (once.ran) is<typeof once.value, string>(true);
  // @ts-expect-error nothing ran, nothing came of it
  else void once.value;

  for await (const change of holdfast.watch("a", { prefix: true })) {
    is<typeof change, WatchEvent>(true);
    // @ts-expect-error a gap is of no lock
    if (change.type === "gap") void change.name;
    else is<typeof change.name, string>(true);
  }
  const view = await holdfast.inspect("a");
  is<typeof view, LockView | null>(true);
  is<ReturnType<typeof holdfast.metrics>, string>(true);
}

export function told(diagnostic: LockDiagnostic | AcquireDiagnostic): string {
  return "type" in diagnostic ? diagnostic.type : diagnostic.outcome;
}

export function failed(error: unknown): ErrorCode | LockLossReason | null {
  if (error instanceof LockLostError) return error.reason;
  return error instanceof HoldfastError ? error.code : null;
}

/** Options that are computed may be undefined. */
export const options: AcquireOptions = { waitMs: undefined, info: undefined };

declare const pool: Parameters<typeof postgresGuard>[0];
export const guard = postgresGuard(pool, { table: "documents", key: "id", fence: "fence" });
export const text: string = prometheusFenceMetrics().prometheusText() + metrics.prometheusText();
export const frames: [Uint8Array, unknown] = [
  encodeClientFrame([{ kind: "unwatch", id: 1 }]),
  decodeServerFrame(new Uint8Array()),
];
