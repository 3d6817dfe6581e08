/**
 * Answers over HTTP as values, and how a node says no: problem details (RFC 9457) with the codes of the client library. It never shows
 * `session_gone`, since it opens a new session by itself; nor `not_ready` and `internal`.
 */
import { STATUS_CODES } from "node:http";
import type { Rejection } from "@holdfast/lock";
import { errorCodes } from "@holdfast/wire";
import type { ErrorCode, NodeAddress, Refusal } from "@holdfast/wire";
import { apiLimits } from "./limits.js";

export interface Answer {
  readonly status: number;
  /** Null: there is none. */
  readonly body: object | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body is problem details. */
  readonly isProblem?: boolean;
  /** "host:port" where the same request is to be made. */
  readonly redirectTo?: string;
}

/** not_ready: the node is starting or stopping, or not up to date. */
export type ProblemCode = ErrorCode | "session_gone" | "not_ready" | "internal";

export function problem(status: number, code: ProblemCode, detail: string, facts: object = {}): Answer {
  const title = STATUS_CODES[status] ?? "Error";
  const retryable = code in errorCodes ? errorCodes[code as ErrorCode].retryable : code === "not_ready";
  const body = { type: "about:blank", title, status, code, detail, retryable, ...facts };
  const isLater = status === 503 || status === 429;
  const headers = isLater ? { "retry-after": String(apiLimits.retryAfterSeconds) } : {};
  return { status, body, headers, isProblem: true };
}

export function invalidArgument(argument: string, trouble: string, status = 400): Answer {
  return problem(status, "invalid_argument", `${argument} ${trouble}`, { argument });
}

/** `self`: the node that says so. A leader that hands its leadership on names itself until it has: nobody is sent in a circle. */
export function notLeader(leader: NodeAddress | null, self: string | null): Answer {
  if (leader === null || leader.id === self) {
    return problem(503, "not_leader", "the node asked does not lead the cluster, and knows of no leader", {
      leader: null,
    });
  }
  const { id, client } = leader;
  const detail = `the node asked does not lead the cluster: ${id} does, at ${client}`;
  return { ...problem(307, "not_leader", detail, { leader: { id, client } }), redirectTo: client };
}

export function stopping(): Answer {
  return problem(503, "not_ready", "the node is stopping");
}

export function overloaded(detail = "the cluster takes no more requests at the moment"): Answer {
  return problem(503, "overloaded", detail);
}

export function noQuorum(): Answer {
  return problem(503, "no_quorum", "the cluster has no majority to decide with");
}

export function unknownOutcome(why: string): Answer {
  return problem(503, "unknown_outcome", `${why}: whether the request took effect is told to whoever makes it again`);
}

/** `reason`: why it has ended, null when that is not known (any more). */
export function sessionGone(reason: string | null): Answer {
  const why = reason === null ? "there is no such session (any more)" : `the session has ended: ${reason}`;
  return problem(410, "session_gone", why, { reason });
}

export function wrongKey(): Answer {
  return problem(403, "unauthorized", "the session has another key");
}

/** `self`: the id of the node that refuses; null: not known. */
export function refusalAnswer(refusal: Refusal, self: string | null): Answer {
  switch (refusal.code) {
    case "not_leader":
      return notLeader(refusal.leader, self);
    case "no_quorum":
      return noQuorum();
    case "overloaded":
      return overloaded();
    case "unknown_outcome":
      return unknownOutcome("the leader has changed");
    case "session_gone":
      return sessionGone(refusal.reason);
    case "invalid_argument":
      // The node has forgotten that this connection speaks for the session: its leadership was lost and won again.
      if (refusal.argument === "session") return notLeader(null, self);
      return invalidArgument(refusal.argument, refusal.problem);
    case "incompatible":
      return problem(501, "incompatible", refusal.problem);
    case "unauthorized":
      return problem(403, "unauthorized", "the cluster does not admit this client");
    case "change_refused":
      return problem(409, "change_refused", "the change of members was refused", { reason: refusal.reason });
    default:
      return assertNever(refusal);
  }
}

export function rejectionAnswer(rejection: Rejection): Answer {
  switch (rejection.kind) {
    case "sessionGone":
      return sessionGone(rejection.reason);
    case "settled":
      return invalidArgument("request", "is below settled, or was called seen: its answer is not kept");
    case "tooManyRequests": {
      const detail = "1024 requests of this session are open, or their ends were not called settled or seen";
      return problem(429, "overloaded", detail);
    }
    default:
      return assertNever(rejection);
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`);
}
