/** What clients ask about sequencers and the keys that sign them. */
import type { Effect } from "@holdfast/lock";
import type { Query, QueryResult, Refusal } from "@holdfast/wire";
import type { GatewayHost } from "./gateway-host.js";
import type { OpenQueries } from "./open-queries.js";
import type { ClientConnection, Logger } from "./ports.js";
import { notLeader, refuseQuery } from "./refusing.js";

export type KeyQuery = Extract<Query, { readonly kind: "sequencer" | "check" | "keys" }>;

interface PendingQuery {
  readonly connection: ClientConnection;
  readonly id: number;
  readonly query: KeyQuery;
}

interface PendingRotation {
  readonly connection: ClientConnection;
  readonly id: number;
  readonly key: string;
}

export class KeyRequests {
  private readonly host: GatewayHost;
  private readonly open: OpenQueries;
  private readonly logger: Logger;
  /** They came between the version that brings keys and the first key. */
  private keyless: PendingQuery[] = [];
  private readonly rotations: PendingRotation[] = [];

  constructor(host: GatewayHost, open: OpenQueries, logger: Logger) {
    this.host = host;
    this.open = open;
    this.logger = logger;
  }

  onClosed(connection: ClientConnection): void {
    this.keyless = this.keyless.filter((each) => each.connection !== connection);
  }

  /** What was proposed may still be committed by the next leader. */
  onLeadershipLost(): void {
    for (const { connection, id } of this.keyless.splice(0)) this.refuse(connection, id, notLeader(this.host));
    for (const { connection, id } of this.rotations.splice(0)) this.refuse(connection, id, { code: "unknown_outcome" });
  }

  onQuery(connection: ClientConnection, id: number, query: KeyQuery): void {
    if (!this.open.admits(connection, id)) return;
    this.host.gather(
      () => this.answer({ connection, id, query }),
      () => this.refuse(connection, id, notLeader(this.host)),
    );
  }

  /** Whoever asks twice makes two keys; of two who ask at the same time one does. */
  onRotate(connection: ClientConnection, id: number, principal: string): void {
    if (!this.open.admits(connection, id)) return;
    this.host.gather(
      () => this.rotate(connection, id, principal),
      () => this.refuse(connection, id, notLeader(this.host)),
    );
  }

  /** The answer to a rotation, and to who waited for the first key. */
  onKeySet({ id: key, replaces, principal, isSet }: Extract<Effect, { kind: "signingKeySet" }>): void {
    if (isSet && replaces === null) this.logger.info({ key, principal }, "the cluster has a key for sequencers");
    else if (isSet) this.logger.warn({ key, replaces, principal }, "the key for sequencers was replaced");
    for (const pending of this.keyless.splice(0)) this.answer(pending);
    const current = this.host.machine.signingKey?.id ?? key;
    for (const pending of this.rotations.filter((each) => each.key === key)) {
      this.rotations.splice(this.rotations.indexOf(pending), 1);
      this.open.end(pending.connection);
      pending.connection.send({ kind: "keyRotated", id: pending.id, key: current });
    }
  }

  private rotate(connection: ClientConnection, id: number, principal: string): void {
    const refusal = this.host.gate("setSigningKey", "a key for sequencers");
    if (refusal !== null) return this.refuse(connection, id, refusal);
    this.logger.warn({ principal, remote: connection.remote }, "asked to replace the key for sequencers");
    const command = this.host.signingKeys.newKey(principal);
    const pending: PendingRotation = { connection, id, key: command.id };
    this.rotations.push(pending);
    this.host.proposeOwn(command, (why) => {
      this.rotations.splice(this.rotations.indexOf(pending), 1);
      this.refuse(connection, id, why);
    });
  }

  private answer(pending: PendingQuery): void {
    const { connection, id, query } = pending;
    const { machine, lastApplied: index, signingKeys } = this.host;
    if (query.kind === "keys") return this.send(pending, { kind: "keys", index, keys: machine.publicKeys() });
    const refusal = this.host.gate("setSigningKey", "a sequencer");
    if (refusal !== null) return this.refuse(connection, id, refusal);
    // This leader has proposed it, or does so in this turn.
    if (machine.signingKey === null) {
      this.keyless.push(pending);
      return;
    }
    if (query.kind === "check") {
      return this.send(pending, { kind: "check", index, ...signingKeys.check(query.sequencer) });
    }
    const holding = machine.holdingView(query.session, query.key, query.of, query.name);
    const sequencer = holding === null ? null : signingKeys.sign(holding);
    this.send(pending, { kind: "sequencer", index, sequencer });
  }

  private send({ connection, id }: PendingQuery, result: QueryResult): void {
    this.open.end(connection);
    connection.send({ kind: "answer", id, result });
  }

  private refuse(connection: ClientConnection, id: number, refusal: Refusal): void {
    this.open.end(connection);
    refuseQuery(connection, id, refusal);
  }
}
