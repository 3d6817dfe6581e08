/**
 * One field of an array on the wire: checked, typed, or refused with its name. Encoders and decoders use the same
 * functions, so that what we write is what we accept.
 */
import type { Index, Position, Term } from "@holdfast/raft";
import { fromBase64url } from "./base64url.js";
import { limits } from "./limits.js";
import { encodingProblem, integerProblem, keyProblem, textProblem } from "./problems.js";
import { WireError } from "./wire-error.js";

export type Fields = readonly unknown[];

export function badValue(field: string, problem: string): WireError {
  return new WireError("bad_value", field, problem);
}

export function integer(value: unknown, min: number, max: number, field: string): number {
  // The usual case first: a call of integerProblem for each number of a frame would be felt.
  if (
    typeof value === "number" &&
    Number.isSafeInteger(value) &&
    value >= min &&
    value <= max &&
    !Object.is(value, -0)
  ) {
    return value;
  }
  throw badValue(field, integerProblem(value, min, max) ?? "is no number");
}

/** From 0. */
export function count(value: unknown, field: string): number {
  return integer(value, 0, Number.MAX_SAFE_INTEGER, field);
}

/** From 1: sessions, tokens, request numbers. */
export function positive(value: unknown, field: string): number {
  return integer(value, 1, Number.MAX_SAFE_INTEGER, field);
}

export function checksum(value: unknown, field: string): number {
  return integer(value, 0, 0xffffffff, field);
}

export function term(value: unknown): Term {
  return count(value, "term") as Term;
}

export function index(value: unknown, field: string): Index {
  return count(value, field) as Index;
}

export function flag(value: unknown, field: string): boolean {
  if (typeof value !== "boolean") throw badValue(field, "is neither true nor false");
  return value;
}

/** A text that must only survive the wire; who made it has bounded it. */
export function anyText(value: unknown, field: string): string {
  const problem = encodingProblem(value);
  if (problem !== null) throw badValue(field, problem);
  return value as string;
}

export function text(value: unknown, bytesMin: number, bytesMax: number, field: string): string {
  const problem = textProblem(value, bytesMin, bytesMax);
  if (problem !== null) throw badValue(field, problem);
  return value as string;
}

export function name(value: unknown, field: string): string {
  return text(value, 1, limits.nameBytesMax, field);
}

/** A node's or cluster's id, an instance, a feature. */
export function id(value: unknown, field: string): string {
  return text(value, 1, limits.idBytesMax, field);
}

export function key(value: unknown, field: string): string {
  const problem = keyProblem(value, limits.keyDigits);
  if (problem !== null) throw badValue(field, problem);
  return value as string;
}

/** The id of a key that signs sequencers. */
export function signingKeyId(value: unknown, field: string): string {
  const problem = keyProblem(value, limits.signingKeyIdDigits);
  if (problem !== null) throw badValue(field, problem);
  return value as string;
}

/** A public key, or a seed, in base64url. */
export function signingKey(value: unknown, field: string): string {
  if (typeof value !== "string") throw badValue(field, "is no text");
  const isKey = value.length < 2 * limits.signingKeyBytes && fromBase64url(value)?.length === limits.signingKeyBytes;
  if (!isKey) throw badValue(field, `is not ${limits.signingKeyBytes} bytes in base64url`);
  return value;
}

export function byteString(value: unknown, field: string): Uint8Array {
  if (!(value instanceof Uint8Array)) throw badValue(field, "is no byte string");
  return value;
}

export function nullable<T>(value: unknown, field: string, read: (value: unknown, field: string) => T): T | null {
  return value === null ? null : read(value, field);
}

export function list(value: unknown, field: string): Fields {
  if (!Array.isArray(value)) throw new WireError("bad_shape", field, "is no array");
  return value as Fields;
}

export function listUpTo(value: unknown, max: number, field: string): Fields {
  const items = list(value, field);
  if (items.length > max) throw new WireError("too_large", field, `has more than ${max} members`);
  return items;
}

/** At least `least` fields: later releases may add some at the end. */
export function fieldsOf(value: unknown, least: number, field: string): Fields {
  const fields = list(value, field);
  if (fields.length < least) throw new WireError("bad_shape", field, `has fewer than ${least} fields`);
  return fields;
}

/** A field that its sender may leave out: it ends before it, or has null in its place when more follows. */
export function isGiven(fields: Fields, at: number): boolean {
  return at < fields.length && fields[at] !== null;
}

/** Exactly so many: what is stored or replicated must mean the same to every reader. */
export function exactFieldsOf(value: unknown, exact: number, field: string): Fields {
  const fields = list(value, field);
  if (fields.length !== exact) throw new WireError("bad_shape", field, `has not ${exact} fields`);
  return fields;
}

/** Checks each member; `read` gets the member's name only when it must complain, so a list costs no texts. */
export function mapList<T>(items: Fields, field: string, read: (value: unknown, field: string) => T): T[] {
  const result = new Array<T>(items.length);
  for (let at = 0; at < items.length; at++) {
    result[at] = read(items[at], field);
  }
  return result;
}

export function encodePosition(position: Position, field: string): number[] {
  return [term(position.term), index(position.index, field)];
}

export function decodePosition(value: unknown, field: string): Position {
  const fields = fieldsOf(value, 2, field);
  return { term: term(fields[0]), index: index(fields[1], field) };
}

/** A closed set of words as numbers on the wire. `numbers` must name every word, by its type. */
export interface Words<Word extends string> {
  readonly numberFor: (word: Word, field: string) => number;
  readonly wordFor: (value: unknown, field: string) => Word;
}

export function wordsOf<Word extends string>(numbers: Readonly<Record<Word, number>>): Words<Word> {
  const byNumber = new Map<unknown, Word>();
  const byWord = new Map<unknown, number>();
  for (const word of Object.keys(numbers) as Word[]) {
    byNumber.set(numbers[word], word);
    byWord.set(word, numbers[word]);
  }
  return {
    numberFor(word, field) {
      const number = byWord.get(word);
      if (number === undefined) throw badValue(field, "is none of the known words");
      return number;
    },
    wordFor(value, field) {
      const word = byNumber.get(value);
      if (word === undefined) throw badValue(field, "is none of the known words");
      return word;
    },
  };
}
