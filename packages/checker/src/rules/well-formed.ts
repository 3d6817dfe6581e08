/** What every producer owes (history.ts). A history that breaks it isn't judged further: the fault may be the producer's. */
import type { CallResult, EventOf, History, HistoryEvent, Operation } from "../history.js";
import type { Findings } from "../verdict.js";

const resultsOf: Readonly<Record<Operation["kind"], readonly CallResult["kind"][]>> = {
  acquire: ["acquired", "refused", "gaveUp"],
  release: ["released"],
  close: ["closed"],
  forceRelease: ["forced"],
  inspect: ["inspected"],
};

export function checkWellFormed(history: History, findings: Findings): void {
  const form = new Form(history, findings);
  for (const [position, event] of history.events.entries()) {
    findings.judged("well-formed");
    form.check(event, position);
  }
}

class Form {
  private readonly findings: Findings;
  private readonly nodes: ReadonlySet<string>;
  private readonly calls: Map<number, { readonly event: EventOf<"call">; isOpen: boolean }> = new Map();
  private lastAt = Number.NEGATIVE_INFINITY;
  private nextIndex: number;

  constructor(history: History, findings: Findings) {
    this.findings = findings;
    this.nodes = new Set(history.nodes);
    this.nextIndex = history.firstIndex;
  }

  check(event: HistoryEvent, position: number): void {
    const problem = this.problemOfTime(event) ?? this.problemOf(event);
    if (problem !== null) this.findings.violation("well-formed", problem, [position]);
  }

  private problemOfTime({ at }: HistoryEvent): string | null {
    const isInOrder = Number.isFinite(at) && at >= this.lastAt;
    if (isInOrder) this.lastAt = at;
    return isInOrder ? null : `time falls from ${this.lastAt} to ${at}`;
  }

  private problemOf(event: HistoryEvent): string | null {
    switch (event.kind) {
      case "call":
        return this.problemOfCall(event);
      case "return":
        return this.problemOfReturn(event);
      case "state":
        if (this.calls.get(event.call)?.event.op.kind !== "acquire") return `call ${event.call} is no acquire`;
        return event.since !== null && event.since > event.at ? "`since` comes after the event" : null;
      case "committed": {
        const expected = this.nextIndex;
        if (event.index !== expected) return `entry ${event.index} is committed where ${expected} is next`;
        this.nextIndex += 1;
        return null;
      }
      case "applied":
        return event.index < this.nextIndex ? null : `entry ${event.index} is applied and not told as committed`;
      case "openSent":
      case "sessionOpened":
      case "sessionEnded":
      case "sent":
      case "told":
      case "keepaliveSent":
      case "keepaliveTold":
      case "remaining":
      case "guardWrite":
        return this.nodes.has(event.client) ? `${event.client} is a node, not a client` : null;
      default:
        return null;
    }
  }

  private problemOfCall(event: EventOf<"call">): string | null {
    const { call, client, op } = event;
    if (this.calls.has(call)) return `call ${call} comes twice`;
    this.calls.set(call, { event, isOpen: true });
    if (this.nodes.has(client)) return `${client} is a node, not a client`;
    if (op.kind !== "release") return null;
    const of = this.calls.get(op.of)?.event;
    const isOwn = of !== undefined && of.op.kind === "acquire" && of.client === client;
    return isOwn ? null : `call ${call} releases ${op.of}, which is no acquire of ${client}`;
  }

  private problemOfReturn({ call, result }: EventOf<"return">): string | null {
    const known = this.calls.get(call);
    if (known === undefined || !known.isOpen) return `call ${call} returns and is not open`;
    known.isOpen = false;
    const { kind } = known.event.op;
    const isAnswer = result.kind === "failed" || result.kind === "unknown" || resultsOf[kind].includes(result.kind);
    return isAnswer ? null : `${result.kind} is no result of ${kind}`;
  }
}
