/** Another client's session, which acts directly in the log. */
import type { Mode, RequestNumber, SessionId } from "@holdfast/lock";
import type { FakeCluster } from "./fake-cluster.js";

export class Stranger {
  readonly session: SessionId;
  private readonly cluster: FakeCluster;
  private next: RequestNumber = 1;

  constructor(cluster: FakeCluster, key = "f".repeat(32)) {
    this.cluster = cluster;
    this.session = cluster.openStranger(key);
  }

  /** Returns the request's number, for release. */
  acquire(name: string, options: { mode?: Mode; lockDelayMs?: number } = {}): RequestNumber {
    const { mode = "exclusive", lockDelayMs = 0 } = options;
    const request = this.take();
    const asked = { names: [name], mode, slots: 0, wait: true, lockDelayMs, maxHoldMs: 0, info: "a stranger" };
    this.cluster.apply({ kind: "acquire", ...this.carried(request), ...asked });
    return request;
  }

  release(of: RequestNumber): void {
    this.cluster.apply({ kind: "release", ...this.carried(this.take()), of, afterMs: 0 });
  }

  private take(): RequestNumber {
    this.next += 1;
    return this.next - 1;
  }

  private carried(request: RequestNumber): {
    session: SessionId;
    request: RequestNumber;
    settled: RequestNumber;
    seen: readonly RequestNumber[];
  } {
    return { session: this.session, request, settled: 1, seen: [] };
  }
}
