/**
 * Which connection speaks for which session, at this leader. The newest resume owns the session. While a resume awaits its quorum
 * round nothing is pushed (its answer will hold it all), and what the client sends for that session is kept.
 */
import type { SessionId } from "@holdfast/lock";
import { limits } from "@holdfast/wire";
import type { ServerMessage } from "@holdfast/wire";
import type { ClientConnection } from "./ports.js";

interface Resume {
  readonly key: string;
  readonly payloads: Uint8Array[];
  /** The number of the newest one. */
  keepalive: number | null;
}

export class SessionOwners {
  private readonly owners = new Map<SessionId, ClientConnection>();
  /** A few connections may be resuming one session at once: the last to finish owns it. */
  private readonly resumes = new Map<ClientConnection, Map<SessionId, Resume>>();
  private readonly sessionsOf = new Map<ClientConnection, Set<SessionId>>();

  standing(session: SessionId, connection: ClientConnection): "owner" | "resuming" | "other" {
    if (this.resumes.get(connection)?.has(session) === true) return "resuming";
    return this.owners.get(session) === connection ? "owner" : "other";
  }

  /** Sessions that this connection owns or is resuming. */
  countOf(connection: ClientConnection): number {
    return (this.sessionsOf.get(connection)?.size ?? 0) + (this.resumes.get(connection)?.size ?? 0);
  }

  /** Returns the connection that owned the session before, if it was another one. */
  own(session: SessionId, connection: ClientConnection): ClientConnection | null {
    const former = this.owners.get(session) ?? null;
    if (former === connection) return null;
    if (former !== null) this.sessionsOf.get(former)?.delete(session);
    this.owners.set(session, connection);
    const sessions = this.sessionsOf.get(connection);
    if (sessions === undefined) this.sessionsOf.set(connection, new Set([session]));
    else sessions.add(session);
    return former;
  }

  send(session: SessionId, message: ServerMessage): void {
    this.owners.get(session)?.send(message);
  }

  beginResume(session: SessionId, key: string, connection: ClientConnection): void {
    let resumes = this.resumes.get(connection);
    if (resumes === undefined) {
      resumes = new Map();
      this.resumes.set(connection, resumes);
    }
    resumes.set(session, { key, payloads: [], keepalive: null });
  }

  /** What was kept for it; null when it was superseded or its connection has closed. */
  endResume(session: SessionId, connection: ClientConnection): Resume | null {
    const resumes = this.resumes.get(connection);
    const resume = resumes?.get(session) ?? null;
    resumes?.delete(session);
    if (resumes?.size === 0) this.resumes.delete(connection);
    return resume;
  }

  /** False: too many are kept already. */
  keepCommand(session: SessionId, connection: ClientConnection, payload: Uint8Array): boolean {
    const resume = this.resumes.get(connection)?.get(session);
    if (resume === undefined || resume.payloads.length >= limits.outcomesPerSessionMax) return false;
    resume.payloads.push(payload);
    return true;
  }

  keepKeepalive(session: SessionId, connection: ClientConnection, number: number): void {
    const resume = this.resumes.get(connection)?.get(session);
    if (resume !== undefined) resume.keepalive = number;
  }

  resuming(): { connection: ClientConnection; session: SessionId }[] {
    const all = [];
    for (const [connection, resumes] of this.resumes) {
      for (const session of resumes.keys()) all.push({ connection, session });
    }
    return all;
  }

  forget(session: SessionId): void {
    const owner = this.owners.get(session);
    this.owners.delete(session);
    if (owner !== undefined) this.sessionsOf.get(owner)?.delete(session);
  }

  forgetConnection(connection: ClientConnection): void {
    this.resumes.delete(connection);
    for (const session of this.sessionsOf.get(connection) ?? []) {
      if (this.owners.get(session) === connection) this.owners.delete(session);
    }
    this.sessionsOf.delete(connection);
  }

  clear(): void {
    this.owners.clear();
    this.resumes.clear();
    this.sessionsOf.clear();
  }
}
