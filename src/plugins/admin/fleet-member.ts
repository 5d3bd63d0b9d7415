import { resolve } from 'node:path'
import { isLoopback } from '../../base/loopback.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { scanAdminOrigin } from './admin-origin.ts'

/** More would make each read of the fleet slow. */
const MEMBERS_MAX = 64
const NAME = /^[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$/

/** Another server, and the credentials for its admin API. Paths are absolute. */
export interface FleetMember {
  readonly name: string
  /** `https://192.0.2.53:9154` */
  readonly origin: string
  /** '' = none. */
  readonly token: string
  /** Certificates of authorities; '' = those of Node.js. */
  readonly ca: string
}

/** Reads `server NAME URL { token FILE | ca FILE }`. `others`: those before. Throws InputError. */
export function scanFleetMember(
  d: Dispenser,
  root: string,
  others: readonly FleetMember[],
): FleetMember {
  const [name = '', url = ''] = d.remainingArgs(2, 2)
  const origin = scanOrigin(d, name, url)
  const same = others.find((other) => other.name === name || other.origin === origin)
  if (same !== undefined) {
    throw d.error(`server ${name}: ${same.name === name ? `the name` : origin} appears twice`)
  }
  if (others.length >= MEMBERS_MAX) throw d.error(`more than ${MEMBERS_MAX} servers`)
  const files = { token: '', ca: '' }
  d.eachProperty(() => {
    const property = d.value()
    if (property !== 'token' && property !== 'ca')
      throw d.unknownProperty(property, ['token', 'ca'])
    if (files[property] !== '') throw d.error(`server ${name}: ${property} appears twice`)
    files[property] = resolve(root, d.onlyArg())
    if (property === 'ca' && origin.startsWith('http:')) {
      throw d.error(`server ${name}: ca has no effect without TLS: remove it, or write https://`)
    }
  })
  return { name, origin, ...files }
}

function scanOrigin(d: Dispenser, name: string, url: string): string {
  if (!NAME.test(name)) {
    throw d.error(`server ${JSON.stringify(name)}: use letters, digits and -._, at most 63`)
  }
  const origin = scanAdminOrigin(url)
  // The text may have a password.
  if (origin === undefined) {
    throw d.error(`server ${name}: write its address as HOST, HOST:PORT or https://HOST:PORT`)
  }
  const { protocol, hostname } = new URL(origin)
  if (protocol === 'http:' && !isLoopback(`${hostname}:`)) {
    throw d.error(`server ${name}: ${hostname} is another machine and needs TLS: write https://`)
  }
  return origin
}
