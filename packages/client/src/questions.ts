/** Questions and orders as callers put them: their arguments checked, their answers in the caller's terms. */
import type { LockView, PublicKey, SessionView, Token } from "@holdfast/lock";
import { limits } from "@holdfast/wire";
import type { MembersView, NodeAddress } from "@holdfast/wire";
import { InvalidArgumentError } from "./errors.js";
import type {
  ForceReleaseOptions,
  ListOptions,
  MembersChangeOptions,
  RotateKeyOptions,
  StatusOptions,
} from "./holdfast.js";
import type { LeaderFinder } from "./leader-finder.js";
import { checkMembersChange } from "./members-change.js";
import { reportOf } from "./node-status.js";
import type { NodeReport } from "./node-status.js";
import { checkDuration, checkName, checkOptionNames, checkText, checkWhole } from "./options.js";
import type { ClientOptions } from "./options.js";
import type { ClientPorts } from "./ports.js";
import type { ProcessHold } from "./process-hold.js";
import type { ForcedRelease, Queries } from "./queries.js";
import { checkOf, malformed, readSequencer } from "./sequencer.js";
import type { SequencerCheck } from "./sequencer.js";

const timerMsMax = 2 ** 31 - 1;

export interface QuestionsParts {
  readonly ports: ClientPorts;
  readonly finder: LeaderFinder;
  readonly queries: Queries;
  readonly hold: ProcessHold;
  /** Throws when no question may be put any more. */
  readonly checkOpen: () => void;
}

export class Questions {
  private readonly options: ClientOptions;
  private readonly parts: QuestionsParts;
  private readonly reportEnders = new Set<() => void>();

  constructor(options: ClientOptions, parts: QuestionsParts) {
    this.options = options;
    this.parts = parts;
  }

  async inspect(name: string): Promise<LockView | null> {
    checkName("name", name);
    this.parts.checkOpen();
    const { lock } = await this.parts.queries.ask({ kind: "inspect", name }, "lock");
    return lock;
  }

  async list(options: ListOptions = {}): Promise<LockView[]> {
    checkOptionNames("list", options);
    const { prefix = "" } = options;
    checkText("prefix", prefix, 0, limits.nameBytesMax);
    this.parts.checkOpen();
    const all: LockView[] = [];
    for (;;) {
      const after = all.at(-1)?.name ?? "";
      const limit = limits.queryLimitMax;
      const { locks, more } = await this.parts.queries.ask({ kind: "list", prefix, after, limit }, "locks");
      all.push(...locks);
      if (!more || locks.length === 0) return all;
    }
  }

  async sessions(): Promise<readonly SessionView[]> {
    this.parts.checkOpen();
    const { sessions } = await this.parts.queries.ask({ kind: "sessions", limit: limits.queryLimitMax }, "sessions");
    return sessions;
  }

  async status(options: StatusOptions = {}): Promise<NodeReport[]> {
    checkOptionNames("status", options);
    const { timeoutMs = 3_000 } = options;
    checkDuration("timeoutMs", timeoutMs, 1, timerMsMax);
    this.parts.checkOpen();
    const shared = {
      info: this.options.info,
      clusterId: this.parts.finder.clusterId,
      seenIndex: 0,
      pingMs: timeoutMs,
      isUrgent: () => false,
    };
    this.parts.hold.begin();
    const reports = this.parts.finder.endpoints.map((endpoint) =>
      reportOf({ endpoint, ...shared }, this.parts.ports, timeoutMs, this.reportEnders),
    );
    return await Promise.all(reports).finally(() => this.parts.hold.end());
  }

  async forceRelease(name: string, token: Token, options: ForceReleaseOptions = {}): Promise<ForcedRelease> {
    checkName("name", name);
    checkWhole("token", token, 1, Number.MAX_SAFE_INTEGER);
    checkOptionNames("forceRelease", options);
    const { lockDelayMs = 0, principal = this.ownPrincipal } = options;
    checkWhole("lockDelayMs", lockDelayMs, 0, limits.lockDelayMsMax);
    checkText("principal", principal, 0, limits.principalBytesMax);
    this.parts.checkOpen();
    return await this.parts.queries.forceRelease(name, token, principal, lockDelayMs);
  }

  async check(sequencer: string): Promise<SequencerCheck> {
    if (typeof sequencer !== "string") throw new InvalidArgumentError("sequencer", "must be a string");
    this.parts.checkOpen();
    const read = readSequencer(sequencer);
    return read === null
      ? malformed
      : checkOf(read, await this.parts.queries.ask({ kind: "check", sequencer }, "check"));
  }

  async publicKeys(): Promise<readonly PublicKey[]> {
    this.parts.checkOpen();
    const { keys } = await this.parts.queries.ask({ kind: "keys" }, "keys");
    return keys;
  }

  async rotateKey(options: RotateKeyOptions = {}): Promise<string> {
    checkOptionNames("rotateKey", options);
    const { principal = this.ownPrincipal } = options;
    checkText("principal", principal, 0, limits.principalBytesMax);
    this.parts.checkOpen();
    return await this.parts.queries.rotateKey(principal);
  }

  async transfer(to?: string): Promise<NodeAddress | null> {
    if (to !== undefined) checkText("to", to, 1, limits.idBytesMax);
    this.parts.checkOpen();
    return await this.parts.queries.transfer(to ?? null);
  }

  async finalizeUpgrade(): Promise<number> {
    this.parts.checkOpen();
    return await this.parts.queries.finalize();
  }

  async members(): Promise<MembersView> {
    this.parts.checkOpen();
    return await this.parts.queries.members();
  }

  async changeMembers(change: MembersChangeOptions): Promise<number> {
    const checked = checkMembersChange(change);
    this.parts.checkOpen();
    return await this.parts.queries.changeMembers(checked);
  }

  /** What nodes have not said by now of themselves is not waited for. */
  close(): void {
    for (const end of [...this.reportEnders]) end();
  }

  /** 64 characters have at most the 256 bytes that a principal may have. */
  private get ownPrincipal(): string {
    return Array.from(this.options.info).slice(0, 64).join("");
  }
}
