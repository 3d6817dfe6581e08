/** The openSession's that are proposed, by key: which connection is told. */
import type { ClientConnection } from "./ports.js";

/** A key may be proposed more than once; whoever asked last is told. */
export interface Opening {
  connection: ClientConnection;
  proposals: number;
}

export class Openings {
  private readonly byKey = new Map<string, Opening>();
  private readonly keysOf = new Map<ClientConnection, Set<string>>();

  get size(): number {
    return this.byKey.size;
  }

  countOf(connection: ClientConnection): number {
    return this.keysOf.get(connection)?.size ?? 0;
  }

  has(key: string): boolean {
    return this.byKey.has(key);
  }

  /** One more proposal of this key. */
  propose(key: string, connection: ClientConnection): Opening {
    const opening = this.byKey.get(key) ?? { connection, proposals: 0 };
    if (opening.connection !== connection) this.forgetKey(key, opening.connection);
    opening.connection = connection;
    opening.proposals += 1;
    this.byKey.set(key, opening);
    const keys = this.keysOf.get(connection);
    if (keys === undefined) this.keysOf.set(connection, new Set([key]));
    else keys.add(key);
    return opening;
  }

  /** A proposal did not enter the log. It takes nothing from one that came through. */
  refuse(key: string, opening: Opening): void {
    opening.proposals -= 1;
    if (opening.proposals === 0 && this.byKey.get(key) === opening) this.take(key);
  }

  /** Who is told, and no longer waits for it. */
  take(key: string): ClientConnection | null {
    const opening = this.byKey.get(key);
    if (opening === undefined) return null;
    this.byKey.delete(key);
    this.forgetKey(key, opening.connection);
    return opening.connection;
  }

  forgetConnection(connection: ClientConnection): void {
    for (const key of this.keysOf.get(connection) ?? []) this.byKey.delete(key);
    this.keysOf.delete(connection);
  }

  clear(): void {
    this.byKey.clear();
    this.keysOf.clear();
  }

  private forgetKey(key: string, connection: ClientConnection): void {
    const keys = this.keysOf.get(connection);
    keys?.delete(key);
    if (keys?.size === 0) this.keysOf.delete(connection);
  }
}
