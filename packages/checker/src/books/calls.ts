/** What applications asked of their client libraries, and what these said of their locks. */
import type { CallResult, EventOf, HistoryEvent, Operation } from "../history.js";

export interface Call {
  readonly call: number;
  readonly client: string;
  readonly op: Operation;
  readonly at: number;
  readonly position: number;
  end: { readonly result: CallResult; readonly at: number; readonly position: number } | null;
  /** Numbered commands that were sent for it. */
  readonly sent: { readonly session: number; readonly request: number }[];
  lastSentAt: number | null;
  /** Of an acquire. */
  readonly states: { readonly event: EventOf<"state">; readonly position: number }[];
  /** Calls of release. */
  readonly releases: Call[];
}

export type AcquireOperation = Extract<Operation, { readonly kind: "acquire" }>;
export type Acquired = Extract<CallResult, { readonly kind: "acquired" }>;

export class CallBook {
  readonly calls: Map<number, Call> = new Map();
  readonly told: { readonly event: EventOf<"told">; readonly position: number }[] = [];
  readonly opened: { readonly event: EventOf<"sessionOpened">; readonly position: number }[] = [];
  readonly ended: { readonly event: EventOf<"sessionEnded">; readonly position: number }[] = [];
  readonly writes: { readonly event: EventOf<"guardWrite">; readonly position: number }[] = [];
  /** Whether the history shows which numbered commands served which calls. */
  tellsSending = false;
  private readonly openings: Map<number, EventOf<"sessionOpened">> = new Map();

  /** Null: no client is known to have opened it. */
  ownerOf(session: number): string | null {
    return this.openings.get(session)?.client ?? null;
  }

  /** As its client was told of it; null: not known. */
  openingOf(session: number): EventOf<"sessionOpened"> | null {
    return this.openings.get(session) ?? null;
  }

  /** Of its openSession; null: not known. */
  keyOf(session: number): string | null {
    return this.openings.get(session)?.key ?? null;
  }

  note(event: HistoryEvent, position: number): void {
    switch (event.kind) {
      case "call":
        this.onCall(event, position);
        return;
      case "return": {
        const call = this.calls.get(event.call);
        if (call !== undefined) call.end = { result: event.result, at: event.at, position };
        return;
      }
      case "state":
        this.calls.get(event.call)?.states.push({ event, position });
        return;
      case "sent":
        if (event.call === null) return;
        this.tellsSending = true;
        this.onSent(this.calls.get(event.call), event);
        return;
      case "told":
        this.told.push({ event, position });
        return;
      case "sessionOpened":
        this.openings.set(event.session, event);
        this.opened.push({ event, position });
        return;
      case "sessionEnded":
        this.ended.push({ event, position });
        return;
      case "guardWrite":
        this.writes.push({ event, position });
        return;
      default:
        return;
    }
  }

  private onSent(call: Call | undefined, event: EventOf<"sent">): void {
    if (call === undefined) return;
    call.sent.push(event);
    // What is sent later gives it back.
    if (call.end === null) call.lastSentAt = event.at;
  }

  private onCall({ call, client, op, at }: EventOf<"call">, position: number): void {
    const record: Call = {
      call,
      client,
      op,
      at,
      position,
      end: null,
      sent: [],
      lastSentAt: null,
      states: [],
      releases: [],
    };
    this.calls.set(call, record);
    if (op.kind === "release") this.calls.get(op.of)?.releases.push(record);
  }
}

/** What an acquire got, if it is known to have got it. */
export function acquiredBy(call: Call): Acquired | null {
  const result = call.end?.result;
  return result?.kind === "acquired" ? result : null;
}
