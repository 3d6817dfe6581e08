/** The loop of a worker, and that of the prober. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Application } from "./application.js";
import type { Gate } from "./gate.js";
import type { HeldLock } from "./held-lock.js";
import type { WorkerOrder } from "./protocol.js";
import type { Registers } from "./registers.js";
import type { Reporter } from "./reporter.js";

/** After a refused or failed acquire: the service may be gone for seconds. */
const retryMs = 100;

export interface WorkParts {
  readonly order: WorkerOrder;
  readonly application: Application;
  /** Null: this worker writes to nothing. */
  readonly registers: Registers | null;
  readonly gate: Gate;
  readonly reporter: Reporter;
  readonly isDraining: () => boolean;
}

export async function work(parts: WorkParts): Promise<void> {
  const { order, application, registers, reporter, isDraining } = parts;
  while (!isDraining()) {
    const name = order.locks[Math.floor(Math.random() * order.locks.length)];
    const held = name === undefined ? null : await application.acquire(name);
    if (held === null) {
      await sleep(retryMs);
      continue;
    }
    reporter.tell({ kind: "holding", name: held.lock.name });
    if (registers !== null) await changeBoth(held, registers, parts);
    await sleep(order.holdMs * Math.random());
    await application.release(held);
    reporter.tell({ kind: "holding", name: null });
    await sleep(order.restMs * Math.random());
  }
}

/** Read, look, write: what a lock is for. */
async function changeBoth(held: HeldLock, registers: Registers, { gate }: WorkParts): Promise<void> {
  const { lock } = held;
  const fence = { resource: lock.name, token: lock.token };
  let unguarded: number;
  const guarded = await registers.readGuarded(fence);
  try {
    unguarded = await registers.readUnguarded(lock.name);
    lock.assertHeld();
  } catch {
    // The lock is lost already, or the store is: it knows, and writes nothing.
    return;
  }
  gate.pass(lock.name, lock.token);
  const writes: Promise<unknown>[] = [registers.writeUnguarded(lock.name, unguarded + 1).catch(() => undefined)];
  if (guarded !== null) writes.push(registers.writeGuarded(fence, guarded + 1));
  await Promise.all(writes);
}

export async function probe({ order, application, isDraining }: WorkParts): Promise<void> {
  for (let turn = 0; !isDraining(); turn += 1) {
    const name = order.locks[turn % order.locks.length];
    const held = name === undefined ? null : await application.acquire(name);
    if (held !== null) await application.release(held);
    await sleep(held === null ? retryMs : order.restMs);
  }
}
