/** Base64 for URLs, without padding (RFC 4648, section 5), where there is no Buffer. One text for each sequence of bytes: another is refused. */

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const values = new Map([...digits].map((digit, value) => [digit, value]));

export function toBase64url(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const left = Math.min(3, bytes.length - at);
    const group = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    for (let place = 0; place <= left; place++) text += digits.charAt((group >> (18 - 6 * place)) & 63);
  }
  return text;
}

/** Null when the text is none that `toBase64url` makes. */
export function fromBase64url(text: string): Uint8Array | null {
  if (text.length % 4 === 1) return null;
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  let bits = 0;
  let held = 0;
  let at = 0;
  for (const digit of text) {
    const value = values.get(digit);
    if (value === undefined) return null;
    bits = ((bits << 6) | value) & 0xffff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes[at++] = (bits >> held) & 0xff;
    }
  }
  // What is left over holds nothing.
  return (bits & ((1 << held) - 1)) === 0 ? bytes : null;
}
