/** The HTTP API at a node of a virtual cluster, without sockets: exchanges that a test makes, and what they were answered. */
import { LockApi } from "../../src/api/lock-api.js";
import type { Answer } from "../../src/api/answers.js";
import type { EventSink, Exchange } from "../../src/api/exchange.js";
import type { VirtualCluster, VirtualNode } from "../virtual/virtual-cluster.js";

export interface Asking {
  readonly credential?: string;
  readonly body?: unknown;
  readonly query?: string;
  readonly parameter?: string;
  readonly lastEventId?: string;
  readonly traceparent?: string;
  /** Of a stream's reader: what it may have unread. */
  readonly bytesMax?: number;
}

export class FakeExchange implements Exchange {
  readonly remote = "virtual:0";
  readonly query: string;
  readonly parameter: string;
  readonly body: unknown;
  answered: Answer | null = null;
  events: string | null = null;
  isEnded = false;
  private readonly asking: Asking;
  private gone: (() => void) | null = null;

  constructor(asking: Asking) {
    this.asking = asking;
    this.query = asking.query ?? "";
    this.parameter = asking.parameter ?? "";
    this.body = asking.body;
  }

  header(name: string): string | undefined {
    const { credential, lastEventId, traceparent } = this.asking;
    return { "holdfast-session": credential, "last-event-id": lastEventId, traceparent }[name];
  }

  answer(answer: Answer): void {
    if (this.answered !== null) throw new Error("it is answered already");
    this.answered = answer;
    this.gone = null;
    this.isEnded = true;
  }

  stream(): EventSink {
    this.events = "";
    return {
      write: (text) => {
        this.events += text;
        if ((this.events ?? "").length <= (this.asking.bytesMax ?? Number.POSITIVE_INFINITY)) return true;
        this.leave();
        return false;
      },
      end: () => {
        this.isEnded = true;
      },
    };
  }

  onGone(run: () => void): void {
    this.gone = run;
  }

  /** The client closes its socket. */
  leave(): void {
    const { gone } = this;
    this.gone = null;
    this.isEnded = true;
    gone?.();
  }

  /** "200 granted", "409 lock_held", or "open" */
  get told(): string {
    if (this.answered === null) return this.isEnded ? "left" : "open";
    const { code, outcome } = (this.answered.body ?? {}) as { readonly code?: string; readonly outcome?: string };
    return [this.answered.status, code ?? outcome].filter((word) => word !== undefined).join(" ");
  }

  get value(): Readonly<Record<string, unknown>> {
    return (this.answered?.body ?? {}) as Readonly<Record<string, unknown>>;
  }
}

type Operation = Exclude<keyof LockApi, "open" | "close">;

export class VirtualHttp {
  readonly api: LockApi;
  private readonly cluster: VirtualCluster;

  constructor(cluster: VirtualCluster, node: VirtualNode) {
    const { host, clock } = node;
    if (host === null) throw new Error("the node is down");
    this.cluster = cluster;
    this.api = new LockApi({ clock, hasSession: (session) => host.hasSession(session) });
    this.api.open(host.gateway);
  }

  begin(operation: Operation, asking: Asking = {}): FakeExchange {
    const exchange = new FakeExchange(asking);
    this.api[operation](exchange);
    return exchange;
  }

  async ask(operation: Operation, asking: Asking = {}, limitMs = 30_000): Promise<FakeExchange> {
    const exchange = this.begin(operation, asking);
    await this.cluster.clock.until(`an answer to ${operation}`, () => exchange.isEnded, limitMs);
    return exchange;
  }

  /** The credential of a new session. */
  async open(ttlMs = 60_000): Promise<string> {
    const opened = await this.ask("openSession", { body: { ttlMs } });
    return String(opened.value["credential"]);
  }

  /** Held at once. Returns its token. */
  async hold(credential: string, request: number, name: string): Promise<number> {
    const granted = await this.ask("acquire", { credential, body: { request, names: [name] } });
    if (granted.told !== "200 granted") throw new Error(granted.told);
    const [grant] = granted.value["grants"] as { readonly token: number }[];
    return grant?.token ?? 0;
  }
}
