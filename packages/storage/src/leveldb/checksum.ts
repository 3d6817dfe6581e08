import { crc32c } from "@holdfast/wire";

const maskDelta = 0xa282ead8;

/** LevelDB never stores a bare crc32c: a checksum over bytes that hold their own checksum would be weak. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + maskDelta) >>> 0;
}
