/** `holdfast ls` and `holdfast show`. */
import type { HolderView, LockView } from "@holdfast/client";
import type { Command } from "commander";
import { withClient, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { formatDuration } from "../durations.js";
import { columns, facts, json, paintFor, plain, unpainted } from "../output.js";
import type { Paint, Style } from "../output.js";

export function addLsCommand(program: Command, context: Context): void {
  withCluster(program.command("ls"))
    .description("list the locks that are held, waited for or delayed")
    .argument("[prefix]", "only those whose names begin with it", "")
    .action(async (prefix: string, options: ClusterOptions) => {
      const locks = await withClient(options, context.io, (holdfast) => holdfast.list({ prefix }));
      context.io.out(options.json === true ? json({ locks }) : listText(locks, paintFor(context.io)));
    });
}

export function addShowCommand(program: Command, context: Context): void {
  withCluster(program.command("show"))
    .description("show one lock: holders, waiters, lock-delays")
    .argument("<name>", "the lock")
    .action(async (name: string, options: ClusterOptions) => {
      const lock = await withClient(options, context.io, (holdfast) => holdfast.inspect(name));
      context.io.out(options.json === true ? json({ name, lock }) : lockText(name, lock, paintFor(context.io)));
    });
}

const stateColumn = 1;

export function listText(locks: readonly LockView[], paint: Paint = unpainted): string {
  if (locks.length === 0) return "no locks\n";
  const rows = locks.map((lock) => [
    plain(lock.name),
    stateOf(lock),
    [...new Set(lock.holders.map(({ token }) => token))].join(","),
    String(lock.holderCount),
    String(lock.waiterCount),
    lock.holders.length === 0 ? "" : plain(lock.holders[0]?.info ?? ""),
  ]);
  const styleOf = (row: number, column: number): Style | null => {
    const lock = locks[row];
    return column === stateColumn && lock !== undefined && isDelayed(lock) ? "yellow" : null;
  };
  return columns(["NAME", "STATE", "TOKEN", "HOLDERS", "WAITERS", "HELD BY"], rows, { paint, styleOf });
}

export function lockText(name: string, lock: LockView | null, paint: Paint = unpainted): string {
  if (lock === null)
    return facts([
      ["name", plain(name)],
      ["state", "free"],
    ]);
  const places: [string, string][] = lock.slots > 0 ? [["places", `${lock.holderCount} of ${lock.slots} taken`]] : [];
  const delays = lock.delays.map(({ delayMs, index, slot }): [string, string] => [
    "delayed",
    `${formatDuration(delayMs)} in all, since entry ${index}${slot === null ? "" : `, place ${slot}`}`,
  ]);
  const top = facts([["name", plain(lock.name)], ["state", stateOf(lock)], ...places, ...delays]);
  const heads = { paint, styleOf: () => null };
  const holders = lock.holders.map((holder) => [...holderCells(holder), plain(holder.info)]);
  const waiters = lock.waiters.map((waiter) => [
    waiter.mode,
    String(waiter.session),
    waiter.reserves ? "yes" : "",
    waiter.names
      .filter((other) => other !== lock.name)
      .map(plain)
      .join(","),
    plain(waiter.info),
  ]);
  return [
    top,
    holders.length === 0 ? "" : `\n${columns(["TOKEN", "MODE", "PLACE", "SESSION", "HELD BY"], holders, heads)}`,
    lock.holderCount > holders.length ? `and ${lock.holderCount - holders.length} more holders\n` : "",
    waiters.length === 0
      ? ""
      : `\n${columns(["WAITS FOR", "SESSION", "RESERVES", "AND FOR", "WAITER"], waiters, heads)}`,
    lock.waiterCount > waiters.length ? `and ${lock.waiterCount - waiters.length} more waiters\n` : "",
  ].join("");
}

function holderCells(holder: HolderView): string[] {
  return [String(holder.token), holder.mode, holder.slot === null ? "" : String(holder.slot), String(holder.session)];
}

function stateOf(lock: LockView): string {
  if (lock.mode !== null) return lock.mode === "slot" ? "places" : lock.mode;
  return isDelayed(lock) ? "delayed" : "free";
}

/** Nobody holds it, and nobody gets it yet. */
function isDelayed(lock: LockView): boolean {
  return lock.mode === null && lock.delays.length > 0;
}
