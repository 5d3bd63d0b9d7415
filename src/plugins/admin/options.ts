import { resolve } from 'node:path'
import { InputError, type Position } from '../../base/errors.ts'
import { isLoopback } from '../../base/loopback.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import type { AdminRole } from '../../plugin/admin.ts'
import { scanHostPort } from '../../plugin/arguments/host-port.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import { ADMIN_PORT_DEFAULT } from './admin-origin.ts'
import { type FleetMember, scanFleetMember } from './fleet-member.ts'

/** Options of a directive `admin`. Paths are absolute. */
export interface AdminOptions {
  /** `host:port`; a missing host is every address. */
  readonly address: string
  /** Path of the file with the token of each role; '' = none. */
  readonly tokens: Readonly<Record<AdminRole, string>>
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  readonly hosts: readonly string[]
  /** The file of events; undefined = they are only in memory. */
  readonly events: { readonly path: string; readonly octetsMax: number } | undefined
  /** Serve the web console; undefined = the property is absent, so that it is off. */
  readonly console: boolean | undefined
  /** Other servers that this one shows. */
  readonly servers: readonly FleetMember[]
}

const ADDRESS_DEFAULT = `localhost:${ADMIN_PORT_DEFAULT}`
const EVENT_FILE_MIB_DEFAULT = 64
const EVENT_FILE_MIB_MAX = 65_536
const MIB = 1024 * 1024
const HOST = /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/

interface PlacedOptions {
  readonly options: AdminOptions
  /** Of the directive. */
  readonly position: Position
}

type DraftOptions = { -readonly [K in keyof AdminOptions]: AdminOptions[K] }

/**
 * Reads `admin [ADDRESS] { PROPERTY... }`, whose README lists the properties. `root`: base directory of relative
 * paths. Throws InputError, also if other machines could use the API without a token and TLS.
 */
export function scanAdmin(d: Dispenser, root: string): PlacedOptions {
  const options: DraftOptions = {
    address: ADDRESS_DEFAULT,
    tokens: { view: '', operate: '' },
    tls: undefined,
    hosts: [],
    events: undefined,
    console: undefined,
    servers: [],
  }
  let position: Position = d.position()
  for (let i = 0; nextOnce(d, i); i++) {
    position = d.position()
    const [address] = d.remainingArgs(0, 1)
    if (address !== undefined) options.address = scanHostPort(d, address)
    d.eachProperty(() => scanProperty(d, options, root))
  }
  const { address, tokens, tls } = options
  const hasToken = tokens.view !== '' || tokens.operate !== ''
  if (!isLoopback(address) && (!hasToken || tls === undefined)) {
    const missing = [hasToken ? '' : '`token FILE`', tls === undefined ? '`tls CERT KEY`' : '']
    const advice = `add ${missing.filter((text) => text !== '').join(' and ')}, or listen on localhost`
    throw new InputError(position, `other machines reach ${address}: ${advice}`)
  }
  return { options, position }
}

function scanProperty(d: Dispenser, options: DraftOptions, root: string): void {
  const property = d.value()
  switch (property) {
    case 'token':
      options.tokens = scanToken(d, options.tokens, root)
      return
    case 'tls': {
      if (options.tls !== undefined) throw d.error('tls appears twice')
      const [cert = '', key = ''] = d.remainingArgs(2, 2)
      options.tls = { cert: resolve(root, cert), key: resolve(root, key) }
      return
    }
    case 'host':
      options.hosts = [...options.hosts, ...d.remainingArgs(1).map((name) => scanHost(d, name))]
      return
    case 'events':
      if (options.events !== undefined) throw d.error('events appears twice')
      options.events = scanEvents(d, root)
      return
    case 'console':
      if (options.console !== undefined) throw d.error('console appears twice')
      options.console = scanSwitch(d)
      return
    case 'server':
      options.servers = [...options.servers, scanFleetMember(d, root, options.servers)]
      return
    default:
      throw d.unknownProperty(property, ['token', 'tls', 'host', 'events', 'console', 'server'])
  }
}

function scanToken(
  d: Dispenser,
  tokens: AdminOptions['tokens'],
  root: string,
): AdminOptions['tokens'] {
  const [path = '', role = 'operate'] = d.remainingArgs(1, 2)
  if (role !== 'view' && role !== 'operate') {
    throw d.error(`the role of a token is \`view\` or \`operate\`, got ${role}`)
  }
  if (tokens[role] !== '') throw d.error(`token appears twice for the role ${role}`)
  return { ...tokens, [role]: resolve(root, path) }
}

function scanSwitch(d: Dispenser): boolean {
  const text = d.onlyArg()
  if (text !== 'on' && text !== 'off') throw d.error(`console must be on or off, got ${text}`)
  return text === 'on'
}

function scanHost(d: Dispenser, text: string): string {
  const host = text.toLowerCase()
  if (!HOST.test(host)) throw d.error(`host is not a host name: ${text}`)
  return host
}

function scanEvents(d: Dispenser, root: string): AdminOptions['events'] {
  const [path = '', size = String(EVENT_FILE_MIB_DEFAULT)] = d.remainingArgs(1, 2)
  const mebibytes = /^\d{1,5}$/.test(size) ? Number(size) : 0
  if (mebibytes < 1 || mebibytes > EVENT_FILE_MIB_MAX) {
    throw d.error(`size of the event file must be from 1 to ${EVENT_FILE_MIB_MAX} MiB, got ${size}`)
  }
  return { path: resolve(root, path), octetsMax: mebibytes * MIB }
}
