/** What a node's log says of its roles, as events of the history. Its own times aren't used: they are wall times, which a scenario may bend. */
import type { UntimedEvent } from "../worker/protocol.js";

interface LogLine {
  readonly msg?: unknown;
  readonly role?: unknown;
  readonly term?: unknown;
  readonly durationMs?: unknown;
  readonly reason?: unknown;
  readonly index?: unknown;
}

/** A leader whose disk is too slow gives its place up. */
const slowWrite = /^a write has not returned for (\d+) ms$/;

export class NodeLogs {
  /** Node -> the term that it leads in. */
  private readonly leading = new Map<string, number>();

  /** Of one line; it may say nothing. */
  eventsOf(node: string, line: string): readonly UntimedEvent[] {
    const said = parsed(line);
    if (said === null || typeof said.msg !== "string") return [];
    const { msg, role, term, durationMs } = said;
    if (typeof role === "string" && typeof term === "number") return this.onRole(node, role, term);
    if (msg === "snapshot installed" && typeof said.index === "number") {
      return [{ kind: "installed", node, index: said.index, stateHash: null }];
    }
    if (msg === "serving as leader" && typeof term === "number") return [{ kind: "serving", node, term }];
    const isStall = msg === "the loop was stalled" && typeof durationMs === "number" && this.leading.has(node);
    return isStall ? [{ kind: "stall", node, ms: durationMs }] : [];
  }

  /** For how long the machine kept the node waiting, by this line of its log: for a turn on a CPU, or for its disk. */
  waitMsIn(line: string): number {
    const said = parsed(line);
    if (said?.msg === "the loop was stalled" && typeof said.durationMs === "number") return said.durationMs;
    const [, ms = "0"] = slowWrite.exec(typeof said?.reason === "string" ? said.reason : "") ?? [];
    return Number(ms);
  }

  onDeath(node: string): void {
    this.leading.delete(node);
  }

  private onRole(node: string, role: string, term: number): readonly UntimedEvent[] {
    const events: UntimedEvent[] = [];
    const led = this.leading.get(node);
    if (led !== undefined && (role !== "leader" || led !== term)) {
      this.leading.delete(node);
      events.push({ kind: "deposed", node, term: led });
    }
    if (role === "leader" && led !== term) {
      this.leading.set(node, term);
      events.push({ kind: "leader", node, term });
    }
    return events;
  }
}

function parsed(line: string): LogLine | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}
