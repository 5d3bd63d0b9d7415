import { readFileSync } from 'node:fs'
import { isSystemError } from '../../base/system-error.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { type Answered, ask, questionOf } from '../../client/ask.ts'
import { type HostPort, printHostPort } from '../../dns/host-port.ts'
import { Opcode, printRcode, Rcode, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import type { Message, ResourceRecord } from '../../dns/message/message.ts'
import {
  equalNames,
  isSubdomain,
  labelOffsets,
  NAME_OCTETS_MAX,
  printName,
} from '../../dns/name/name.ts'
import { scanResolvConf } from '../../dns/resolv-conf.ts'
import { isWithin, printAddress, scanCidr } from '../../dns/text/address.ts'
import type { AskServer } from './parent-ds.ts'

const RESOLV_CONF = '/etc/resolv.conf'
const DSYNC_LABEL = Buffer.from('\x06_dsync', 'latin1')
/** The scheme of DSYNC records that name a receiver of NOTIFY (RFC 9859 section 2.2). */
const SCHEME_NOTIFY = 1
/** Type, scheme and port, before the target. */
const HEAD_OCTETS = 5
const TIMEOUT_MS = 5000
const TRIES = 2
/** A parent decides which hosts get a packet: not many. */
const TARGETS_MAX = 4
const ADDRESSES_MAX = 4
/** It does not decide that this host gets one, or its link: loopback, link-local, multicast, and what embeds these. */
const REFUSED = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/3',
  '::/32',
  'fe80::/10',
  'ff00::/8',
].map((text) => scanCidr(text)!)

interface NotifyParts {
  /** Resolvers, the first that answers counts. */
  readonly resolvers: readonly HostPort[]
  readonly askServer: AskServer
}

/**
 * Notifies the parent that the CDS of a zone changed (RFC 9859), if it has published where to. Otherwise the parent
 * finds the change when it looks for it. Never rejects.
 */
export async function notifyParent(
  zone: Uint8Array,
  log: Logger,
  parts: NotifyParts = { resolvers: systemResolvers(), askServer: ask },
): Promise<void> {
  const name = printName(zone)
  const targets = await findTargets(zone, parts)
  if (targets.length === 0) log.debug(`keys of ${name}: no DSYNC in the parent`, 'cds-no-dsync')
  await Promise.all(
    targets.slice(0, TARGETS_MAX).map(async ({ host, port }) => {
      for (const address of await findAddresses(host, parts)) {
        const server = { host: address, port }
        const result = await sendNotify(zone, server, parts.askServer)
        const text = `keys of ${name}: NOTIFY(CDS) to ${printName(host)} ${printHostPort(server)}`
        if (result === '') {
          log.info(`${text}: received`, 'cds-notify')
          return
        }
        log.warning(`${text}: ${result}`, 'cds-notify-failed')
      }
    }),
  )
}

function systemResolvers(): readonly HostPort[] {
  try {
    return scanResolvConf(readFileSync(RESOLV_CONF, 'utf8')).servers
  } catch (error) {
    if (!isSystemError(error)) throw error
    return []
  }
}

/** Returns '' or why the target did not accept it. */
async function sendNotify(
  zone: Uint8Array,
  server: HostPort,
  askServer: AskServer,
): Promise<string> {
  const query = { ...questionOf(zone, RRType.CDS), opcode: Opcode.NOTIFY, flags: HeaderFlag.AA }
  const answered = await askServer({ server, query, timeoutMs: TIMEOUT_MS, tries: TRIES })
  if (answered.kind === 'failed') return answered.reason
  const { rcode } = answered.message
  return rcode === Rcode.NOERROR ? '' : `rcode ${printRcode(rcode)}`
}

interface Target {
  /** Wire form. */
  readonly host: Uint8Array
  readonly port: number
}

/** The lookups of RFC 9859 section 4.1. */
async function findTargets(zone: Uint8Array, parts: NotifyParts): Promise<readonly Target[]> {
  const labels = labelOffsets(zone)
  if (labels.length === 0) return []
  // The parent is one label above, until a negative answer names it.
  let parentAt = labels[1] ?? zone.length - 1
  const reply = await lookUp(insertDsync(zone, parentAt), RRType.DSYNC, parts)
  const found = readTargets(reply)
  if (found.length > 0 || reply === undefined) return found
  const apex = reply.authority.find(({ type }) => type === RRType.SOA)?.owner
  const guessed = zone.subarray(parentAt)
  if (apex !== undefined && !equalNames(apex, guessed) && isSubdomain(guessed, apex)) {
    parentAt = zone.length - apex.length
    const nearer = readTargets(await lookUp(insertDsync(zone, parentAt), RRType.DSYNC, parts))
    if (nearer.length > 0) return nearer
  }
  const own = Buffer.concat([DSYNC_LABEL, zone.subarray(parentAt)])
  return readTargets(await lookUp(own, RRType.DSYNC, parts))
}

function insertDsync(zone: Uint8Array, parentAt: number): Uint8Array {
  return Buffer.concat([zone.subarray(0, parentAt), DSYNC_LABEL, zone.subarray(parentAt)])
}

function readTargets(reply: Message | undefined): readonly Target[] {
  return (reply?.answer ?? []).filter(isTarget).map(({ rdata }) => {
    return { host: rdata.subarray(HEAD_OCTETS), port: (rdata[3]! << 8) | rdata[4]! }
  })
}

function isTarget({ type, rdata }: ResourceRecord): boolean {
  if (type !== RRType.DSYNC) return false
  const isForCds = ((rdata[0]! << 8) | rdata[1]!) === RRType.CDS
  const hasPort = (rdata[3]! | rdata[4]!) !== 0
  // A target of the root means that the service does not exist (RFC 9859 section 2.2).
  return isForCds && rdata[2] === SCHEME_NOTIFY && hasPort && rdata.length > HEAD_OCTETS + 1
}

async function findAddresses(host: Uint8Array, parts: NotifyParts): Promise<readonly string[]> {
  const replies = await Promise.all([
    lookUp(host, RRType.AAAA, parts),
    lookUp(host, RRType.A, parts),
  ])
  return replies
    .flatMap((reply) => reply?.answer ?? [])
    .filter(({ type }) => type === RRType.A || type === RRType.AAAA)
    .map(({ type, rdata }) => ({ family: type === RRType.A ? (1 as const) : (2 as const), rdata }))
    .filter(({ family, rdata }) => !REFUSED.some((network) => isWithin(network, rdata, family)))
    .map(({ family, rdata }) => printAddress(rdata, family))
    .slice(0, ADDRESSES_MAX)
}

/** Undefined = no resolver answers. */
async function lookUp(
  name: Uint8Array,
  type: number,
  { resolvers, askServer }: NotifyParts,
): Promise<Message | undefined> {
  // The name of a long zone is too long with one more label.
  if (name.length > NAME_OCTETS_MAX) return undefined
  const query = { ...questionOf(name, type), flags: HeaderFlag.RD }
  for (const server of resolvers) {
    const answered: Answered = await askServer({
      server,
      query,
      timeoutMs: TIMEOUT_MS,
      tries: TRIES,
    })
    if (answered.kind === 'failed') continue
    const { rcode } = answered.message
    if (rcode === Rcode.NOERROR || rcode === Rcode.NXDOMAIN) return answered.message
  }
  return undefined
}
