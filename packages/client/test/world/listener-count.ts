/** How many listen for an AbortSignal's abort: Node's EventTarget doesn't say it in public. */
export function listenerCount(signal: AbortSignal): number {
  const symbol = Object.getOwnPropertySymbols(signal).find((one) => String(one) === "Symbol(kEvents)");
  const events =
    symbol === undefined ? undefined : (signal as unknown as Record<symbol, Map<string, { size: number }>>)[symbol];
  return events?.get("abort")?.size ?? 0;
}
