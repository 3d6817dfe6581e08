/**
 * Who is told what changes. A leader tells the watches of its connections; every node remembers the newest changes, so that a watch which
 * comes back to another leader misses nothing, or hears that it does.
 */
import type { Effect } from "@holdfast/lock";
import { limits } from "@holdfast/wire";
import type { ClientMessage, LockChange } from "@holdfast/wire";
import { ChangeHistory } from "./change-history.js";
import type { GatewayHost } from "./gateway-host.js";
import type { ClientConnection } from "./ports.js";
import { notLeader, refuseQuery } from "./refusing.js";

type WatchMessage = Extract<ClientMessage, { readonly kind: "watch" }>;

interface Watch {
  readonly connection: ClientConnection;
  readonly id: number;
  readonly name: string;
  readonly isPrefix: boolean;
}

export class Watches {
  private readonly host: GatewayHost;
  private readonly history = new ChangeHistory(limits.changesKeptMax);
  /** Those that wait for their quorum round too. */
  private readonly all = new Map<ClientConnection, Map<number, Watch>>();
  private readonly byName = new Map<string, Set<Watch>>();
  private readonly byPrefix = new Set<Watch>();

  constructor(host: GatewayHost) {
    this.host = host;
  }

  /** Of every applied entry, on every node. */
  onEffects(index: number, effects: readonly Effect[]): void {
    const changes: LockChange[] = [];
    for (const effect of effects) if (effect.kind === "changed") changes.push(effect);
    if (changes.length === 0) return;
    this.history.add(index, changes);
    if (this.byName.size > 0 || this.byPrefix.size > 0) this.tell(index, changes);
  }

  /** A snapshot has taken the place of the machine: what led to it is not known here. */
  onInstalled(index: number): void {
    this.history.forget(index);
  }

  onWatch(connection: ClientConnection, message: WatchMessage): void {
    const { id, name, isPrefix, after } = message;
    if (!this.host.isLeader) return refuseQuery(connection, id, notLeader(this.host));
    const own = this.all.get(connection) ?? new Map<number, Watch>();
    if (own.has(id)) {
      const problem = "is the number of another watch of this connection";
      return refuseQuery(connection, id, { code: "invalid_argument", argument: "id", problem });
    }
    const isFull =
      own.size >= limits.watchesPerConnectionMax || (isPrefix && this.byPrefix.size >= limits.prefixWatchesMax);
    if (isFull) return refuseQuery(connection, id, { code: "overloaded" });
    const watch: Watch = { connection, id, name, isPrefix };
    own.set(id, watch);
    this.all.set(connection, own);
    this.host.gather(
      () => {
        if (this.isWanted(watch)) this.begin(watch, after);
      },
      () => {
        if (!this.isWanted(watch)) return;
        this.end(watch);
        refuseQuery(connection, id, notLeader(this.host));
      },
    );
  }

  onUnwatch(connection: ClientConnection, id: number): void {
    const watch = this.all.get(connection)?.get(id);
    if (watch !== undefined) this.end(watch);
  }

  onClosed(connection: ClientConnection): void {
    for (const watch of this.all.get(connection)?.values() ?? []) this.unlist(watch);
    this.all.delete(connection);
  }

  /** Clients hear of it, and watch at the next leader. */
  onLeadershipLost(): void {
    this.all.clear();
    this.byName.clear();
    this.byPrefix.clear();
  }

  private isWanted(watch: Watch): boolean {
    return this.all.get(watch.connection)?.get(watch.id) === watch;
  }

  /** What a quorum round covers is applied: nothing that its client was told before comes after this. */
  private begin(watch: Watch, after: number | null): void {
    const { connection, id } = watch;
    const missed = after === null ? null : this.history.after(after);
    if (after === null || missed === null) {
      connection.send({ kind: "watching", id, index: this.host.lastApplied, isGap: true });
    } else {
      connection.send({ kind: "watching", id, index: after, isGap: false });
      for (const { index, changes } of missed) {
        const seen = changes.filter(({ name }) => concerns(watch, name));
        if (seen.length > 0) sendChanges(watch, index, seen);
      }
    }
    if (watch.isPrefix) this.byPrefix.add(watch);
    else {
      const others = this.byName.get(watch.name);
      if (others === undefined) this.byName.set(watch.name, new Set([watch]));
      else others.add(watch);
    }
  }

  private tell(index: number, changes: readonly LockChange[]): void {
    const told = new Map<Watch, LockChange[]>();
    const add = (watch: Watch, change: LockChange): void => {
      const earlier = told.get(watch);
      if (earlier === undefined) told.set(watch, [change]);
      else earlier.push(change);
    };
    for (const change of changes) {
      for (const watch of this.byName.get(change.name) ?? []) add(watch, change);
      for (const watch of this.byPrefix) if (change.name.startsWith(watch.name)) add(watch, change);
    }
    for (const [watch, seen] of told) sendChanges(watch, index, seen);
  }

  private end(watch: Watch): void {
    this.unlist(watch);
    const own = this.all.get(watch.connection);
    own?.delete(watch.id);
    if (own?.size === 0) this.all.delete(watch.connection);
  }

  private unlist(watch: Watch): void {
    this.byPrefix.delete(watch);
    const others = this.byName.get(watch.name);
    others?.delete(watch);
    if (others?.size === 0) this.byName.delete(watch.name);
  }
}

function concerns({ name, isPrefix }: Watch, changed: string): boolean {
  return isPrefix ? changed.startsWith(name) : changed === name;
}

function sendChanges({ connection, id }: Watch, index: number, changes: readonly LockChange[]): void {
  if (changes.length > limits.changesPerEntryMax) connection.send({ kind: "watching", id, index, isGap: true });
  else connection.send({ kind: "changes", id, index, changes });
}
