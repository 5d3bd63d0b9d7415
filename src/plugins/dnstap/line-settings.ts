import { hostname } from 'node:os'
import { PROGRAM, VERSION } from '../../base/version.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { type SinkEndpoint, scanSinkEndpoint } from './endpoint.ts'
import { TEXT_OCTETS_MAX } from './entry.ts'
import type { SinkSettings } from './sink.ts'
import type { TlsFiles } from './tls-files.ts'

/** Of WRITEBUFFER and QUEUE, as in CoreDNS. */
const WRITE_BUFFER_MAX = 1024
const QUEUE_MAX = 4096
const WRITE_BUFFER_OCTETS = 2 ** 20
const QUEUE_MESSAGES = 10_000
/** Messages over TCP may have 64 KiB each. */
const QUEUE_OCTETS = 10 * 2 ** 20

const PROPERTIES = ['identity', 'version', 'extra', 'skipverify', 'tls']

/** One `dnstap` line of a server block. */
export interface LineSettings extends SinkSettings {
  /** Sinks connect to the endpoint; else the server does. */
  readonly listens: boolean
  readonly endpoint: SinkEndpoint
  readonly keepsMessages: boolean
  /** The certificate of the other side is not verified. */
  readonly skipVerify: boolean
  readonly tls: TlsFiles | undefined
}

/** Reads a line with its block. Throws InputError. */
export function scanLine(d: Dispenser): LineSettings {
  const args = d.remainingArgs(1, 5)
  const listens = args[0] === 'listen'
  if (listens) args.shift()
  if (args.length === 0 || args.length > 4) throw d.argError()
  const [name = '', full, writeBuffer = '1', queue = '1'] = args
  const endpoint = scanSinkEndpoint(d, name, listens)
  if (full !== undefined && full !== 'full') {
    throw d.error(`${JSON.stringify(full)} is not expected here; write full, or nothing`)
  }
  const queues = scanNumber(d, 'QUEUE', queue, QUEUE_MAX)
  const settings = {
    listens,
    endpoint,
    name,
    keepsMessages: full !== undefined,
    writeOctetsMax:
      scanNumber(d, 'WRITEBUFFER', writeBuffer, WRITE_BUFFER_MAX) * WRITE_BUFFER_OCTETS,
    queueMessagesMax: queues * QUEUE_MESSAGES,
    queueOctetsMax: queues * QUEUE_OCTETS,
    identity: hostname(),
    version: `${PROGRAM}-${VERSION}`,
    extra: '',
    skipVerify: false,
    tls: undefined as TlsFiles | undefined,
  }
  const lacksTls = d.error('dnstap listen with tls:// needs the property tls CERT KEY')
  d.eachProperty(() => {
    const property = d.value()
    switch (property) {
      case 'identity':
      case 'version':
      case 'extra':
        settings[property] = scanText(d, property)
        return
      case 'skipverify':
        d.noArgs()
        if (endpoint.kind !== 'tls') throw d.error('skipverify needs an endpoint with tls://')
        settings.skipVerify = true
        return
      case 'tls':
        settings.tls = scanTls(d, listens && endpoint.kind === 'tls')
        return
      default:
        throw d.unknownProperty(property, PROPERTIES)
    }
  })
  if (listens && endpoint.kind === 'tls' && settings.tls === undefined) {
    throw lacksTls
  }
  return settings
}

function scanTls(d: Dispenser, hasUse: boolean): TlsFiles {
  const position = d.position()
  const [certificate = '', key = '', authority] = d.remainingArgs(2, 3)
  if (!hasUse) throw d.error('tls is only for dnstap listen with an endpoint with tls://')
  return { certificate, key, authority, position }
}

function scanText(d: Dispenser, property: string): string {
  const text = d.onlyArg()
  const octets = Buffer.byteLength(text)
  if (octets <= TEXT_OCTETS_MAX) return text
  throw d.error(`${property} has ${octets} octets; use at most ${TEXT_OCTETS_MAX}`)
}

function scanNumber(d: Dispenser, what: string, text: string, most: number): number {
  const number = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= most) return number
  throw d.error(`${what} is ${JSON.stringify(text)}; use a number from 1 to ${most}`)
}
