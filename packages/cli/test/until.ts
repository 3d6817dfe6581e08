/** Waits for a condition, with a limit that only a failure reaches. */
import assert from "node:assert/strict";

export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  limitMs = 10_000,
): Promise<void> {
  const endMs = performance.now() + limitMs;
  while (!(await condition())) {
    assert.ok(performance.now() < endMs, `not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
