// A strict consumer in a page: no types of Node, the browser's entry. Compiled by test/packaging/packages.test.ts, never run.
import { ClientMetrics, connect, currentLock } from "@holdfast/client";
import type { Lock } from "@holdfast/client";

export async function use(button: HTMLButtonElement): Promise<number> {
  const holdfast = await connect({ endpoints: `${location.hostname}:7101`, metrics: new ClientMetrics() });
  const controller = new AbortController();
  button.addEventListener("click", () => controller.abort(), { once: true });
  const lock: Lock = await holdfast.acquire("doc:42", { signal: controller.signal });
  const signal: AbortSignal = lock.signal;
  if (signal.aborted) return lock.token;
  await lock.release();
  await holdfast.close();
  return currentLock()?.token ?? 0;
}
