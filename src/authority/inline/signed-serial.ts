import { isSerialAfter } from '../../dns/serial.ts'

/** 2026-01-01, in seconds since the Unix epoch. */
const EPOCH_SECONDS = 1_767_225_600
/** The serial grows by one in this time, also if the source does not change. */
const STEP_SECONDS = 60

/**
 * Returns the serial of a signed version: that of its source plus the minutes since 2026. So it is after all serials
 * before, also after a restart, without a file that stores it: both parts only grow. `previous`: the serial that was
 * served last; undefined = not known. The result is after it (RFC 1982), and never 0, which some secondaries misread.
 */
export function signedSerial(
  source: number,
  nowSeconds: number,
  previous: number | undefined,
): number {
  const minutes = Math.max(0, Math.floor((nowSeconds - EPOCH_SECONDS) / STEP_SECONDS))
  const serial = (source + minutes) >>> 0 || 1
  if (previous === undefined || isSerialAfter(serial, previous)) return serial
  return (previous + 1) >>> 0 || 1
}
