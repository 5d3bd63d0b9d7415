import { lowerName, ROOT_NAME, scanName } from '../../dns/name/name.ts'

export { isSerialAfter } from '../../dns/serial.ts'

/** SOA timers of every zone built from records, in seconds. */
export const SOA_TTL_SECONDS = 60
const REFRESH_SECONDS = 7200
const RETRY_SECONDS = 1800
const EXPIRE_SECONDS = 86400
const MINIMUM_SECONDS = 60

/** Returns SOA rdata (RFC 1035 section 3.3.13). `serial`: 0..2^32-1. */
export function composeSoa(mname: Uint8Array, rname: Uint8Array, serial: number): Uint8Array {
  const rdata = new Uint8Array(mname.length + rname.length + 20)
  rdata.set(mname)
  rdata.set(rname, mname.length)
  const view = new DataView(rdata.buffer, mname.length + rname.length)
  const numbers = [serial, REFRESH_SECONDS, RETRY_SECONDS, EXPIRE_SECONDS, MINIMUM_SECONDS]
  for (const [i, number] of numbers.entries()) view.setUint32(i * 4, number)
  return rdata
}

/** Returns the serial after `serial`. */
export function nextSerial(serial: number): number {
  return addToSerial(serial, 1)
}

/**
 * Returns `serial` + `count` in serial number arithmetic (RFC 1982 section 3.1; `count` at most
 * 2^31 - 1). Never 0, which some secondaries misread.
 */
export function addToSerial(serial: number, count: number): number {
  return (serial + count) >>> 0 || 1
}

/**
 * Returns the mailbox of an e-mail address as a lower-case wire name. Dots before the `@` belong to
 * the first label (RFC 1035 section 5.1). Undefined = not an address.
 */
export function scanMailbox(email: string): Uint8Array | undefined {
  const match = /^([^@\s\\]+)@([^@\s\\]+)$/.exec(email.trim())
  const local = match?.[1]
  const domain = match?.[2]
  if (local === undefined || domain === undefined) return undefined
  const name = scanName(`${local.replaceAll('.', '\\.')}.${domain.replace(/\.$/, '')}.`, ROOT_NAME)
  return name === undefined ? undefined : lowerName(name)
}
