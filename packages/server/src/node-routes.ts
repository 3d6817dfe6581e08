/** What a node answers about itself over HTTP: health for supervisors, figures for Prometheus, its state for the commands. */
import type { ServerResponse } from "node:http";
import type { PublicKey } from "@holdfast/lock";
import { problem } from "./api/answers.js";
import type { Answer } from "./api/answers.js";
import { commonHeaders } from "./api/http-exchange.js";
import { backupContentType, streamBackup } from "./backup-stream.js";
import type { BackupSource } from "./backup-stream.js";
import { BackupRefusedError } from "./backup-taking.js";
import { diskSpaceOf } from "./checkup.js";
import type { Checkup, CheckupAnswer, ClockReading } from "./checkup.js";
import type { ClusterFacts, NodeIdentity } from "./joining.js";

export interface Health {
  readonly isLive: boolean;
  readonly isReady: boolean;
  /** Why it isn't ready, for a person. */
  readonly problem: string | null;
}

/** What sequencers are verified with (docs/fencing.md), the current key first. Empty below the cluster version that brings keys. */
export interface KeyAnswer {
  readonly keys: readonly PublicKey[];
}

export interface HttpParts {
  health(): Health;
  /** This node's own view of itself; null before the cluster is formed. */
  status(): object | null;
  /** Who this is, for whoever adds it to a cluster; null while it is starting. */
  identity(): NodeIdentity | null;
  /** For a node that wants to join; null before the cluster is formed. */
  cluster(): ClusterFacts | null;
  /** As far as this node has applied the log; null before the cluster is formed. */
  keys(): KeyAnswer | null;
  clock(): ClockReading;
  /** At any time, also of a node that isn't ready. */
  checkup(): Checkup;
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
  /** Rejects with BackupRefusedError. */
  backup(): Promise<BackupSource>;
  /** Whether the cluster has a session of that id, as far as this node has applied the log. */
  hasSession(session: number): boolean;
}

/** What such a route is given. */
export interface NodeCall {
  readonly parts: HttpParts;
  readonly response: ServerResponse;
  readonly answer: (answer: Answer) => void;
}

export function answerHealth({ parts, answer }: NodeCall, asked: "isLive" | "isReady"): void {
  const health = parts.health();
  answer(health[asked] ? { status: 200, body: { status: "ok" } } : notReady(parts));
}

/** `body`: null before there is one. */
export function answerIfThere({ parts, answer }: NodeCall, body: object | null): void {
  answer(body === null ? notReady(parts) : { status: 200, body });
}

export function sendMetrics({ parts, response, answer }: NodeCall): void {
  parts.metrics().then(
    ({ contentType, text }) => {
      const bytes = Buffer.from(text);
      response.writeHead(200, { ...commonHeaders, "content-type": contentType, "content-length": bytes.length });
      response.end(bytes);
    },
    () => answer(problem(500, "internal", "the figures could not be collected")),
  );
}

export function answerCheckup({ parts, answer }: NodeCall): void {
  const checkup = parts.checkup();
  void diskSpaceOf(checkup.dataDirectory).then((disk) => {
    const body: CheckupAnswer = { ...checkup, disk };
    answer({ status: 200, body });
  });
}

/** Only of a node that is up to date as far as it knows. */
export function sendBackup({ parts, response, answer }: NodeCall): void {
  if (!parts.health().isReady) return answer(notReady(parts));
  parts.backup().then(
    (source) => {
      response.writeHead(200, { ...commonHeaders, "content-type": backupContentType });
      return streamBackup(response, source);
    },
    (error: unknown) => {
      if (error instanceof BackupRefusedError) answer(problem(503, error.code, error.message));
      else answer(problem(500, "internal", "the backup could not be taken"));
    },
  );
}

export function notReady(parts: Pick<HttpParts, "health">): Answer {
  return problem(503, "not_ready", parts.health().problem ?? "not yet");
}
