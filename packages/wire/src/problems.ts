/**
 * What is wrong with a value, as a short sentence to follow its name; null when nothing is. Nothing here quotes the
 * value.
 */

export function integerProblem(value: unknown, min: number, max: number): string | null {
  if (typeof value !== "number") return "is no number";
  if (!Number.isSafeInteger(value)) return "is no whole number in range";
  if (value < min) return `is below ${min}`;
  if (value > max) return `is above ${max}`;
  if (Object.is(value, -0)) return "is -0";
  return null;
}

/**
 * A text that people may see in a terminal: well-formed, no control character (Unicode category Cc: U+0000 to U+001F
 * and U+007F to U+009F), no byte order mark at its front (see utf8.ts), from `bytesMin` to `bytesMax` bytes of UTF-8.
 * Everything else is allowed; texts are compared code unit by code unit, without normalisation.
 */
export function textProblem(value: unknown, bytesMin: number, bytesMax: number): string | null {
  if (typeof value !== "string") return "is no text";
  // Each code unit has a byte at least: a text of millions is refused without a walk.
  if (value.length > bytesMax) return `is longer than ${bytesMax} bytes`;
  if (value.length < bytesMin) return bytesMin === 1 ? "is empty" : `is shorter than ${bytesMin} bytes`;
  let bytes = 0;
  for (let at = 0; at < value.length; at++) {
    const unit = value.charCodeAt(at);
    if (unit < 0x80) {
      if (unit < 0x20 || unit === 0x7f) return "has a control character";
      bytes += 1;
    } else if (unit < 0x800) {
      if (unit < 0xa0) return "has a control character";
      bytes += 2;
    } else if (unit < 0xd800 || unit > 0xdfff) {
      bytes += 3;
    } else {
      if (!isPairAt(value, at)) return "has half a surrogate pair";
      at++;
      bytes += 4;
    }
  }
  if (bytes > bytesMax) return `is longer than ${bytesMax} bytes`;
  if (value.charCodeAt(0) === 0xfeff) return "begins with a byte order mark";
  return null;
}

/** What the wire can't carry unchanged: half a surrogate pair, or a byte order mark at the front. */
export function encodingProblem(value: unknown): string | null {
  if (typeof value !== "string") return "is no text";
  for (let at = 0; at < value.length; at++) {
    const unit = value.charCodeAt(at);
    if (unit < 0xd800 || unit > 0xdfff) continue;
    if (!isPairAt(value, at)) return "has half a surrogate pair";
    at++;
  }
  if (value.charCodeAt(0) === 0xfeff) return "begins with a byte order mark";
  return null;
}

function isPairAt(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
}

/** A session's key: exactly `digits` lower-case hex digits. */
export function keyProblem(value: unknown, digits: number): string | null {
  if (typeof value !== "string") return "is no text";
  if (value.length !== digits) return `has not ${digits} digits`;
  for (let at = 0; at < digits; at++) {
    const unit = value.charCodeAt(at);
    const isHex = (unit >= 0x30 && unit <= 0x39) || (unit >= 0x61 && unit <= 0x66);
    if (!isHex) return "is not of lower-case hex digits";
  }
  return null;
}
