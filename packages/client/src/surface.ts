/** What the entries for Node and for browsers have in common. */
export { ClientMetrics } from "./client-metrics.js";
export type { AcquireDiagnostic, LockDiagnostic, SessionDiagnostic } from "./diagnostics.js";
export type { ElectionOptions, Term } from "./election.js";
export {
  ChangeRefusedError,
  HoldfastError,
  InvalidArgumentError,
  LockDelayedError,
  LockHeldError,
  LockLostError,
  WaitTimeoutError,
} from "./errors.js";
export type { HoldfastErrorOptions, LockLossReason } from "./errors.js";
export type {
  ForceReleaseOptions,
  Holdfast,
  ListOptions,
  MembersChangeOptions,
  RotateKeyOptions,
  StatusOptions,
} from "./holdfast.js";
export type { Fence, Lock, LockState, ReleaseResult } from "./lock.js";
export type {
  OpenTelemetryMeter,
  OpenTelemetrySpan,
  OpenTelemetrySpanContext,
  OpenTelemetrySpanOptions,
  OpenTelemetryTracer,
} from "./open-telemetry.js";
export type { LeaderView } from "./observe.js";
export type { WatchEvent } from "./watch.js";
export type { SequencerCheck, SequencerClaim } from "./sequencer.js";
export type { OncePerResult } from "./once-per.js";
export type { Semaphore, SemaphoreOptions } from "./semaphore.js";
export type { NodeReport } from "./node-status.js";
export type {
  AcquireOptions,
  CloseOptions,
  ConnectOptions,
  HoldOptions,
  ObserveOptions,
  ReleaseOptions,
  RequestOptions,
  WatchOptions,
} from "./options.js";
export type { ClientPorts, Clock, Logger, Random, Socket, SocketEvents, Timer, Transport } from "./ports.js";
export type { ForcedRelease } from "./queries.js";
export type { HolderView, LockView, PublicKey, SessionView } from "@holdfast/lock";
export type {
  ChangeRefusalReason,
  ErrorCode,
  Member,
  MemberRole,
  MembersView,
  MemberView,
  NodeAddress,
  NodeStatus,
} from "@holdfast/wire";
