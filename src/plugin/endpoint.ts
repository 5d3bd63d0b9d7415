import type { Dispenser } from '../corefile/dispenser.ts'
import { printAddress, scanAddress } from '../dns/text/address.ts'

const DNS_PORT = 53
const PORT_MAX = 65_535

/** Where a server is. */
export interface Endpoint {
  /** An IP address in its canonical form. */
  readonly host: string
  readonly port: number
}

/** Reads `ADDRESS`, `ADDRESS:PORT` or `[ADDRESS]:PORT`. Throws InputError on anything else. */
export function scanEndpoint(d: Dispenser, text: string): Endpoint {
  const bracketed = /^\[([^\]]*)\](?::(\d{1,5}))?$/.exec(text)
  const quad = /^([\d.]+):(\d{1,5})$/.exec(text)
  const [, host = text, port] = bracketed ?? quad ?? []
  const address = scanAddress(host)
  const number = port === undefined ? DNS_PORT : Number(port)
  if (address === undefined || number < 1 || number > PORT_MAX) {
    throw d.error(`not an IP address or IP address with port: ${JSON.stringify(text)}`)
  }
  return { host: printAddress(address.bytes, address.family), port: number }
}
