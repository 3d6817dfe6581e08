/**
 * Commands, resumes and keepalives of sessions, and what the lock machine says to them. Which connection owns which session is learnt
 * from `resume`; a new leader would miss nothing that is kept here.
 */
import type { Command, Effect, SessionId } from "@holdfast/lock";
import { checkClientCommand, decodeCommand, limits, UnknownCommandError, WireError } from "@holdfast/wire";
import type { Refusal } from "@holdfast/wire";
import type { GatewayHost, GatewayOptions } from "./gateway-host.js";
import type { ClientConnection, Logger } from "./ports.js";
import { notLeader, refuseCommand, refuseFrame, refuseOpening, refuseSession } from "./refusing.js";
import { Openings } from "./openings.js";
import { SessionOwners } from "./session-owners.js";

type SessionCommand = Extract<
  Command,
  { readonly session: SessionId; readonly request: number; readonly settled: number }
>;

export class SessionRequests {
  private readonly owners: SessionOwners = new SessionOwners();
  private readonly openings: Openings = new Openings();
  /** Those of a new cluster that wait for its version to be raised, by key. */
  private readonly early = new Map<string, () => void>();
  private readonly options: GatewayOptions;
  private readonly host: GatewayHost;
  private readonly logger: Logger;

  constructor(options: GatewayOptions, host: GatewayHost, logger: Logger) {
    this.options = options;
    this.host = host;
    this.logger = logger;
  }

  onClosed(connection: ClientConnection): void {
    this.owners.forgetConnection(connection);
    this.openings.forgetConnection(connection);
  }

  /** All keepalives up to `number` have renewed the session. */
  acknowledge(session: SessionId, number: number): void {
    this.owners.send(session, { kind: "acknowledged", session, number });
  }

  /** This node's own no-op is applied: resumes that came before can be answered. */
  onServing(): void {
    for (const { connection, session } of this.owners.resuming()) this.decideResume(connection, session);
  }

  /** Nothing that was proposed here is lost by it: clients ask again at the new leader. */
  onLeadershipLost(): void {
    this.owners.clear();
    this.openings.clear();
    this.early.clear();
  }

  onCommand(connection: ClientConnection, payload: Uint8Array, traceparent?: string): void {
    let command: Command;
    try {
      command = decodeCommand(payload);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      if (error instanceof UnknownCommandError && error.request !== null) {
        this.onUnknownCommand(connection, error.commandKind, error.request);
        return;
      }
      refuseFrame(connection, { code: "invalid_argument", argument: "command", problem: error.code });
      return;
    }
    if (traceparent !== undefined) this.logger.debug(tracedFacts(command, traceparent), "a traced command came");
    const invalid = checkClientCommand(command) ?? this.checkTtl(command);
    if (command.kind === "openSession") {
      this.onOpenSession(connection, command, payload, invalid);
      return;
    }
    if (!isSessionCommand(command)) {
      refuseFrame(connection, { code: "invalid_argument", argument: "command", problem: "not a client's command" });
      return;
    }
    if (invalid !== null) refuseCommand(connection, command, invalid);
    else this.onSessionCommand(connection, command, payload);
  }

  /** A newer client's: the rest of what it does here goes on. The leader may be newer than this node too. */
  private onUnknownCommand(
    connection: ClientConnection,
    kind: number,
    request: { readonly session: SessionId; readonly request: number },
  ): void {
    const { nodeId } = this.options;
    const { clusterVersion } = this.host.machine;
    const problem = `${nodeId} leads, and its release doesn't know commands of kind ${kind}; the cluster is at version ${clusterVersion}`;
    const refusal: Refusal = this.host.isLeader ? { code: "incompatible", problem } : notLeader(this.host);
    refuseCommand(connection, request, refusal);
  }

  private checkTtl(command: Command): Refusal | null {
    if (command.kind !== "openSession") return null;
    const { ttlMsMin, ttlMsMax } = this.options;
    if (command.ttlMs >= ttlMsMin && command.ttlMs <= ttlMsMax) return null;
    const problem = `must be from ${ttlMsMin} to ${ttlMsMax} on this cluster, is ${command.ttlMs}`;
    return { code: "invalid_argument", argument: "ttlMs", problem };
  }

  private onOpenSession(
    connection: ClientConnection,
    command: Extract<Command, { readonly kind: "openSession" }>,
    payload: Uint8Array,
    invalid: Refusal | null,
  ): void {
    const { key } = command;
    if (invalid !== null) refuseOpening(connection, key, invalid);
    else if (!this.host.isLeader) refuseOpening(connection, key, notLeader(this.host));
    else if (!this.openings.has(key) && this.isFullFor(connection)) {
      refuseOpening(connection, key, { code: "overloaded" });
    } else {
      if (this.early.delete(key)) this.openings.take(key);
      const opening = this.openings.propose(key, connection);
      const propose = (): void => {
        this.host.proposeClients(command, payload, false, (refusal) => {
          this.openings.refuse(key, opening);
          refuseOpening(connection, key, refusal);
        });
      };
      if (this.host.isBeginning) this.early.set(key, propose);
      else propose();
    }
  }

  /** The cluster may have begun. */
  releaseEarly(): void {
    if (this.early.size === 0 || this.host.isBeginning) return;
    const all = [...this.early];
    this.early.clear();
    for (const [key, propose] of all) if (this.openings.has(key)) propose();
  }

  private sessionGone(session: SessionId): Refusal {
    return { code: "session_gone", reason: this.host.machine.endReason(session) };
  }

  private isFullFor(connection: ClientConnection): boolean {
    if (this.host.machine.sessionCount + this.openings.size >= this.options.sessionsMax) return true;
    return this.owners.countOf(connection) + this.openings.countOf(connection) >= limits.sessionsPerConnectionMax;
  }

  private onSessionCommand(connection: ClientConnection, command: SessionCommand, payload: Uint8Array): void {
    if (!this.host.isLeader) {
      refuseCommand(connection, command, notLeader(this.host));
      return;
    }
    // It would make all else wait, keepalives too. What is opened once, gives back or keeps alive is taken all the same.
    if (this.host.isOverloaded && command.kind === "acquire") {
      refuseCommand(connection, command, { code: "overloaded" });
      return;
    }
    const standing = this.owners.standing(command.session, connection);
    if (standing === "other") {
      const problem = "this connection has not resumed that session";
      refuseCommand(connection, command, { code: "invalid_argument", argument: "session", problem });
      return;
    }
    if (standing === "resuming") {
      // Its key is not checked yet: keep the command until it is.
      if (!this.owners.keepCommand(command.session, connection, payload)) {
        refuseCommand(connection, command, { code: "overloaded" });
      }
      return;
    }
    this.propose(connection, command, payload);
  }

  private propose(connection: ClientConnection, command: SessionCommand, payload: Uint8Array): void {
    // Whatever gives something back must get through when acquires no longer do.
    const reserved = command.kind === "release" || command.kind === "cancel" || command.kind === "closeSession";
    this.host.proposeClients(command, payload, reserved, (refusal) => refuseCommand(connection, command, refusal));
  }

  onResume(connection: ClientConnection, session: SessionId, key: string): void {
    if (!this.host.isLeader) {
      refuseSession(connection, session, notLeader(this.host));
      return;
    }
    if (this.owners.countOf(connection) >= limits.sessionsPerConnectionMax) {
      refuseSession(connection, session, { code: "overloaded" });
      return;
    }
    this.owners.beginResume(session, key, connection);
    if (this.host.isServing) this.decideResume(connection, session);
  }

  /** Own no-op is applied. The answer waits for a quorum round, so that it is no older than anything this client was told before. */
  private decideResume(connection: ClientConnection, session: SessionId): void {
    this.host.gatherForLease(
      () => this.finishResume(connection, session),
      () => {
        if (this.owners.endResume(session, connection) !== null)
          refuseSession(connection, session, notLeader(this.host));
      },
    );
  }

  private finishResume(connection: ClientConnection, session: SessionId): void {
    const resume = this.owners.endResume(session, connection);
    if (resume === null) return;
    const view = this.host.machine.resumeView(session, resume.key);
    if (view === null) {
      refuseSession(connection, session, this.sessionGone(session));
      return;
    }
    const former = this.owners.own(session, connection);
    if (former !== null) this.supersede(former, session);
    connection.send({ kind: "resumed", ...view });
    if (resume.keepalive !== null) this.keepalive(connection, session, resume.keepalive);
    for (const payload of resume.payloads) this.onCommand(connection, payload);
  }

  onKeepalive(connection: ClientConnection, session: SessionId, number: number): void {
    if (!this.host.isLeader) {
      refuseSession(connection, session, notLeader(this.host));
      return;
    }
    const standing = this.owners.standing(session, connection);
    if (standing === "resuming") this.owners.keepKeepalive(session, connection, number);
    else if (standing === "owner") this.keepalive(connection, session, number);
    else {
      const problem = "this connection has not resumed that session";
      refuseSession(connection, session, { code: "invalid_argument", argument: "session", problem });
    }
  }

  private keepalive(connection: ClientConnection, session: SessionId, number: number): void {
    if (this.host.keepalive(session, number)) return;
    this.host.gatherForLease(
      () => {
        if (this.host.keepalive(session, number)) return;
        refuseSession(connection, session, this.sessionGone(session));
      },
      () => refuseSession(connection, session, notLeader(this.host)),
    );
  }

  /** On a follower nobody owns a session, and all of it is dropped. */
  onEffect(index: number, effect: Effect): void {
    switch (effect.kind) {
      case "sessionOpened":
        this.onSessionOpened(effect);
        return;
      case "outcome": {
        const { session, request, outcome } = effect;
        this.owners.send(session, { kind: "outcome", session, request, index, outcome });
        return;
      }
      case "rejected": {
        const { session, request, rejection } = effect;
        this.owners.send(session, { kind: "rejected", session, request, rejection });
        return;
      }
      case "sessionEnded":
        this.owners.send(effect.session, { kind: "sessionEnded", session: effect.session, reason: effect.reason });
        this.owners.forget(effect.session);
        return;
      default:
        return;
    }
  }

  private onSessionOpened({ key, session, ttlMs }: Extract<Effect, { kind: "sessionOpened" }>): void {
    const connection = this.openings.take(key);
    if (connection === null) return;
    const former = this.owners.own(session, connection);
    if (former !== null) this.supersede(former, session);
    connection.send({ kind: "sessionOpened", key, session, ttlMs });
  }

  /** The newest resume owns the session. A connection that is left without any has no business here. */
  private supersede(former: ClientConnection, session: SessionId): void {
    former.send({ kind: "superseded", session });
    if (this.owners.countOf(former) === 0) former.close(4001, "superseded");
  }
}

function isSessionCommand(command: Command): command is SessionCommand {
  switch (command.kind) {
    case "closeSession":
    case "acquire":
    case "release":
    case "cancel":
    case "setInfo":
      return true;
    default:
      return false;
  }
}

/** A trace's ids lead from a caller's spans to this line, and its session and request to what else is logged. It names no lock. */
function tracedFacts(command: Command, traceparent: string): object {
  const { kind } = command;
  if (!isSessionCommand(command)) return { traceparent, kind };
  const { session, request } = command;
  return { traceparent, kind, session, request };
}
