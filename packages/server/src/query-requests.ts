/** Reads, forced releases, transfers, upgrades and changes of members: whatever is asked with a number of the client's own. */
import type { Effect } from "@holdfast/lock";
import { limits } from "@holdfast/wire";
import type { ClientMessage, Query, QueryResult, Refusal } from "@holdfast/wire";
import type { GatewayHost } from "./gateway-host.js";
import type { KeyQuery } from "./key-requests.js";
import { newMemberProblem } from "./new-member.js";
import type { OpenQueries } from "./open-queries.js";
import type { ClientConnection, Logger } from "./ports.js";
import { notLeader, refuseQuery } from "./refusing.js";

interface PendingForce {
  readonly connection: ClientConnection;
  readonly id: number;
  readonly name: string;
  readonly token: number;
  readonly principal: string;
}

interface PendingRaise {
  readonly connection: ClientConnection;
  readonly id: number;
  readonly version: number;
}

export class QueryRequests {
  private readonly forces: PendingForce[] = [];
  private readonly raises: PendingRaise[] = [];
  private readonly host: GatewayHost;
  private readonly open: OpenQueries;
  private readonly logger: Logger;

  constructor(host: GatewayHost, open: OpenQueries, logger: Logger) {
    this.host = host;
    this.open = open;
    this.logger = logger;
  }

  /** What was proposed may still be committed by the next leader. */
  onLeadershipLost(): void {
    for (const { connection, id } of [...this.forces.splice(0), ...this.raises.splice(0)]) {
      this.open.end(connection);
      refuseQuery(connection, id, { code: "unknown_outcome" });
    }
  }

  onQuery(connection: ClientConnection, id: number, query: Exclude<Query, KeyQuery>): void {
    if (query.kind === "status") {
      connection.send({ kind: "answer", id, result: { kind: "status", status: this.host.status() } });
      return;
    }
    if (!this.open.admits(connection, id)) return;
    this.host.gather(
      () => {
        this.open.end(connection);
        connection.send({ kind: "answer", id, result: this.answerTo(query) });
      },
      () => {
        this.open.end(connection);
        refuseQuery(connection, id, notLeader(this.host));
      },
    );
  }

  private answerTo(query: Exclude<Query, KeyQuery | { kind: "status" }>): QueryResult {
    const { machine, lastApplied: index } = this.host;
    switch (query.kind) {
      case "inspect":
        return { kind: "lock", index, lock: machine.lockView(query.name, limits.waitersShownMax) };
      case "list": {
        const { locks, more } = machine.list(query.prefix, query.after, query.limit);
        return { kind: "locks", index, locks, more };
      }
      case "sessions": {
        const sessions = [];
        for (const session of machine.sessions()) {
          if (sessions.length >= query.limit) break;
          sessions.push(session);
        }
        return { kind: "sessions", index, sessions };
      }
      case "members":
        return { kind: "members", index, members: this.host.members() };
      default:
        return assertNever(query);
    }
  }

  onForceRelease(connection: ClientConnection, message: Extract<ClientMessage, { kind: "forceRelease" }>): void {
    const { id, name, token, principal, lockDelayMs } = message;
    if (!this.open.admits(connection, id)) return;
    const pending: PendingForce = { connection, id, name, token, principal };
    this.forces.push(pending);
    this.logger.warn({ lock: name, token, principal, remote: connection.remote }, "forced release asked for");
    this.host.proposeForced({ kind: "forceRelease", name, token, principal, lockDelayMs }, (refusal) => {
      this.forces.splice(this.forces.indexOf(pending), 1);
      this.open.end(connection);
      refuseQuery(connection, id, refusal);
    });
  }

  onTransfer(connection: ClientConnection, id: number, to: string | null): void {
    if (to !== null && !this.host.nodes.some((node) => node.id === to)) {
      const problem = `no node of this cluster has the id ${to}`;
      refuseQuery(connection, id, { code: "invalid_argument", argument: "to", problem });
      return;
    }
    if (!this.open.admits(connection, id)) return;
    if (to !== null && to === this.host.leader?.id) {
      this.open.end(connection);
      connection.send({ kind: "transferred", id, leader: this.host.leader });
      return;
    }
    this.host.transfer(to, (leader) => {
      this.open.end(connection);
      connection.send({ kind: "transferred", id, leader });
    });
  }

  onChangeMembers(connection: ClientConnection, message: Extract<ClientMessage, { kind: "changeMembers" }>): void {
    const { id, add, promote, remove, isForced } = message;
    for (const member of add) {
      const wrong = newMemberProblem(member);
      if (wrong === null) continue;
      refuseQuery(connection, id, { code: "invalid_argument", argument: "add", problem: wrong.problem });
      return;
    }
    if (!this.open.admits(connection, id)) return;
    const change = { add: add.map((member) => member.id), promote, remove, isForced };
    this.logger.warn({ ...change, remote: connection.remote }, "asked to change the members");
    this.host.changeMembers({ add, promote, remove }, isForced, (result) => {
      this.open.end(connection);
      if ("code" in result) refuseQuery(connection, id, result);
      else connection.send({ kind: "membersChanged", id, index: result.index });
    });
  }

  /** Who asks twice, or when all is done, learns the same: the version that the cluster has. */
  onFinalize(connection: ClientConnection, id: number): void {
    if (!this.open.admits(connection, id)) return;
    this.host.gather(
      () => this.raise(connection, id),
      () => {
        this.open.end(connection);
        refuseQuery(connection, id, notLeader(this.host));
      },
    );
  }

  private raise(connection: ClientConnection, id: number): void {
    const version = this.host.raisableTo();
    const refuse = (refusal: Refusal): void => {
      this.open.end(connection);
      refuseQuery(connection, id, refusal);
    };
    if (typeof version !== "number") return refuse(version);
    const pending: PendingRaise = { connection, id, version };
    this.raises.push(pending);
    if (version <= this.host.machine.clusterVersion) return this.onClusterVersion(version);
    this.logger.warn({ version, remote: connection.remote }, `asked to raise the cluster to version ${version}`);
    this.host.proposeOwn({ kind: "setClusterVersion", version }, (refusal) => {
      this.raises.splice(this.raises.indexOf(pending), 1);
      refuse(refusal);
    });
  }

  /** The cluster has reached it. */
  onClusterVersion(version: number): void {
    for (const pending of this.raises.filter((each) => each.version <= version)) {
      this.raises.splice(this.raises.indexOf(pending), 1);
      this.open.end(pending.connection);
      pending.connection.send({ kind: "finalized", id: pending.id, version });
    }
  }

  /** The answer to a forced release. */
  onForced(effect: Extract<Effect, { kind: "forced" }>): void {
    const { name, token, principal, ended, holders } = effect;
    if (ended > 0) this.logger.warn({ lock: name, token, principal, ended }, "hold ended by force");
    const at = this.forces.findIndex((one) => one.name === name && one.token === token && one.principal === principal);
    const [pending] = at < 0 ? [] : this.forces.splice(at, 1);
    if (pending === undefined) return;
    this.open.end(pending.connection);
    pending.connection.send({ kind: "forced", id: pending.id, ended, holders: holders.length });
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`);
}
