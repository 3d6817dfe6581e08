/**
 * The places of a semaphore, one bit each, set while the place is held or delayed. The list grows with the places in use, never with N:
 * a semaphore of a million places that is held once costs one word.
 */
import { noPlace } from "./records.js";

/** The lowest place below `slots` that is neither held nor delayed, or `noPlace`. */
export function lowestFreePlace(places: readonly number[] | null, slots: number): number {
  if (places === null) return slots > 0 ? 0 : noPlace;
  let word = 0;
  while (word < places.length && places[word] === -1) word += 1;
  const bits = ~(places[word] ?? 0);
  // The lowest set bit alone, as a power of two: its leading zeros tell its number.
  const place = word * 32 + 31 - Math.clz32(bits & -bits);
  return place < slots ? place : noPlace;
}

export function takePlace(places: number[] | null, place: number): number[] {
  const list = places ?? [];
  const word = place >>> 5;
  while (list.length <= word) list.push(0);
  list[word] = (list[word] as number) | (1 << (place & 31));
  return list;
}

/** Null when no place is in use any more. */
export function freePlace(places: number[] | null, place: number): number[] | null {
  if (places === null) return null;
  const word = place >>> 5;
  if (word < places.length) places[word] = (places[word] as number) & ~(1 << (place & 31));
  while (places.length > 0 && places[places.length - 1] === 0) places.pop();
  return places.length === 0 ? null : places;
}

/** Places that can be in use at all: as many as there can be holds. A snapshot that names a higher one is damaged. */
export const placesMax: number = 2 ** 27;

export function isPlaceTaken(places: readonly number[] | null, place: number): boolean {
  return ((places?.[place >>> 5] ?? 0) & (1 << (place & 31))) !== 0;
}
