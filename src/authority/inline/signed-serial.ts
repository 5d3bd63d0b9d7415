import { isSerialAfter } from '../../dns/serial.ts'

/** 2026-01-01, in seconds since the Unix epoch. */
const EPOCH_SECONDS = 1_767_225_600

/**
 * Returns the serial of a signed version: that of its source plus the seconds since 2026. So it is after all serials
 * before, also after a restart without the snapshot, unless the clock or the serial of the source goes back. With a
 * longer step, a version that is signed again after a quick restart would have the serial of the last one, but other
 * signatures. `previous`: the serial that was served last; undefined = not known. Then the result is one second ahead,
 * because the last process may have served a version in this second. The result is after `previous` (RFC 1982), and
 * never 0, which some secondaries misread.
 */
export function signedSerial(
  source: number,
  nowSeconds: number,
  previous: number | undefined,
): number {
  const seconds = Math.max(0, nowSeconds - EPOCH_SECONDS)
  const ahead = previous === undefined ? 1 : 0
  const serial = (source + seconds + ahead) >>> 0 || 1
  if (previous === undefined || isSerialAfter(serial, previous)) return serial
  return (previous + 1) >>> 0 || 1
}
