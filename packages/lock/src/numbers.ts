/** Numbers of commands are checked at the gateway. What still is none of ours (NaN, negative, a fraction, too large) counts as 0. */
export function wholeNumber(value: number): number {
  return Number.isSafeInteger(value) && value > 0 ? value : 0;
}
