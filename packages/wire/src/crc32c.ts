/** CRC-32C (Castagnoli), reflected, as in iSCSI and LevelDB. Eight bytes a step by eight tables ("slicing by 8"). */

const polynomial = 0x82f63b78;

function makeTables(): readonly Int32Array[] {
  const tables: Int32Array[] = [];
  const first = new Int32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let rest = byte;
    for (let bit = 0; bit < 8; bit++) rest = (rest & 1) === 0 ? rest >>> 1 : (rest >>> 1) ^ polynomial;
    first[byte] = rest;
  }
  tables.push(first);
  let previous = first;
  for (let step = 1; step < 8; step++) {
    const table = new Int32Array(256);
    for (let byte = 0; byte < 256; byte++) {
      const value = previous[byte] as number;
      table[byte] = (value >>> 8) ^ (first[value & 0xff] as number);
    }
    tables.push(table);
    previous = table;
  }
  return tables;
}

const [t0, t1, t2, t3, t4, t5, t6, t7] = makeTables() as [
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
];

/**
 * The checksum as an unsigned 32-bit number. `seed` is the checksum of what came before:
 * crc32c(b, crc32c(a)) is the checksum of a followed by b. `start` leaves out that many bytes at the front.
 */
export function crc32c(bytes: Uint8Array, seed: number = 0, start: number = 0): number {
  const end = bytes.length;
  let crc = ~seed;
  let at = start;
  // An index in range never reads undefined; the casts only say so to the compiler.
  for (const blocksEnd = end - 7; at < blocksEnd; at += 8) {
    crc ^=
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24);
    crc =
      (t7[crc & 0xff] as number) ^
      (t6[(crc >>> 8) & 0xff] as number) ^
      (t5[(crc >>> 16) & 0xff] as number) ^
      (t4[crc >>> 24] as number) ^
      (t3[bytes[at + 4] as number] as number) ^
      (t2[bytes[at + 5] as number] as number) ^
      (t1[bytes[at + 6] as number] as number) ^
      (t0[bytes[at + 7] as number] as number);
  }
  for (; at < end; at++) crc = (crc >>> 8) ^ (t0[(crc ^ (bytes[at] as number)) & 0xff] as number);
  return ~crc >>> 0;
}
