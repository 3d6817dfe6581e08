/**
 * UTF-8 without TextEncoder: this package runs where there is none, and must refuse what is malformed rather than
 * replace it.
 */

const notUtf8 = "has text that is no UTF-8";

/**
 * Null when the bytes from `start` to `end` are UTF-8: no overlong form, no surrogate, nothing above U+10FFFF. A byte
 * order mark at the front is refused as well: msgpackr drops or keeps it depending on the text's length and on whether
 * its native part is installed, so two nodes could read two names.
 */
export function utf8Problem(bytes: Uint8Array, start: number, end: number): string | null {
  let at = start;
  while (at < end) {
    const lead = bytes[at++] as number;
    if (lead < 0x80) continue;
    if (lead < 0xc2 || lead > 0xf4 || at === end) return notUtf8;
    const second = bytes[at++] as number;
    if ((second & 0xc0) !== 0x80) return notUtf8;
    if (lead < 0xe0) continue;
    // E0 and F0 could be overlong, ED a surrogate, F4 too high.
    if ((lead === 0xe0 && second < 0xa0) || (lead === 0xed && second >= 0xa0)) return notUtf8;
    if ((lead === 0xf0 && second < 0x90) || (lead === 0xf4 && second >= 0x90)) return notUtf8;
    for (let more = lead < 0xf0 ? 1 : 2; more > 0; more--) {
      if (at === end || ((bytes[at++] as number) & 0xc0) !== 0x80) return notUtf8;
    }
    if (at === start + 3 && lead === 0xef && second === 0xbb && bytes[at - 1] === 0xbf)
      return "has text with a byte order mark";
  }
  return null;
}
