import { randomInt } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'
import type { HostPort } from '../dns/host-port.ts'
import { Opcode, Rcode, RRClass, RRType } from '../dns/iana/index.ts'
import { composeMessage } from '../dns/message/compose-message.ts'
import type { ResourceRecord } from '../dns/message/message.ts'
import { parseMessage } from '../dns/message/parse-message.ts'
import type { TsigKey } from '../dns/tsig/key.ts'
import { RequestSigner } from '../dns/tsig/request-signer.ts'
import type { TransferBudget } from '../xfr/in/transfer-budget.ts'
import {
  type Received,
  TransferFault,
  type TransferFilter,
  TransferReader,
} from '../xfr/in/transfer-reader.ts'
import { askPrimary } from './ask-primary.ts'

/** Maximum silence of a primary, and maximum duration of a transfer. The caller may set lower limits. */
const IDLE_MS = 30_000
const TOTAL_MS = 2 * 60 * 60 * 1000
/** Maximum octets of one transfer. */
const TRANSFER_OCTETS_MAX = 512 * 1024 * 1024

export interface Fetch {
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  readonly primary: HostPort
  /** Source address; '' = any. */
  readonly source: string
  readonly key: TsigKey | undefined
  /**
   * The SOA of our version, to request the changes since then; undefined = request the whole zone.
   */
  readonly soa: ResourceRecord | undefined
  readonly serial: number
  readonly clock: Clock
  readonly timers: Timers
  readonly idleMs?: number
  readonly totalMs?: number
  readonly octetsMax?: number
  readonly signal?: AbortSignal
  /** Default: that of the process. */
  readonly budget?: TransferBudget
  /** Selects the records that are kept; absent = all. */
  readonly filter?: TransferFilter
}

/**
 * Requests a zone from a primary. If the primary does not know IXFR, requests the whole zone at
 * once. Rejects with a TransferFault.
 */
export async function fetchZone(fetch: Fetch): Promise<Received> {
  try {
    return await fetchOnce(fetch)
  } catch (fault) {
    if (fetch.soa === undefined || !isUnable(fault)) throw fault
    return fetchOnce({ ...fetch, soa: undefined })
  }
}

function isUnable(fault: unknown): boolean {
  if (!(fault instanceof TransferFault)) return false
  return fault.rcode === Rcode.NOTIMP || fault.rcode === Rcode.FORMERR
}

async function fetchOnce(fetch: Fetch): Promise<Received> {
  const { zone, primary, source, key, soa, clock, timers, signal } = fetch
  const id = randomInt(0x10000)
  const origin = `transfer from ${primary.host}:${primary.port}`
  const serial = soa === undefined ? undefined : fetch.serial
  const reader = new TransferReader({ zone, id, serial, origin }, fetch.filter, fetch.budget)
  const plain = composeQuery(zone, id, soa)
  const seconds = (): number => Math.floor(clock.now() / 1000)
  const signer = key === undefined ? undefined : new RequestSigner(key)
  const query = signer === undefined ? plain : signer.sign(plain, seconds())
  let received: Received | undefined
  const take = (octets: Uint8Array): boolean => {
    const fault = signer?.verify(octets, seconds()) ?? ''
    if (fault !== '') throw new TransferFault(fault, rcodeOf(octets))
    received = reader.take(octets)
    if (received === undefined) return false
    if (signer?.isSettled === false) throw new TransferFault('the last message is not signed')
    return true
  }
  const { idleMs = IDLE_MS, totalMs = TOTAL_MS, octetsMax = TRANSFER_OCTETS_MAX } = fetch
  const limits = { idleMs, totalMs, octetsMax }
  try {
    await askPrimary({ primary, source, query, take, timers, signal, ...limits })
  } finally {
    reader.close()
  }
  return received!
}

/** Returns the rcode of a message whose signature is invalid; -1 = none, or it is malformed. */
function rcodeOf(octets: Uint8Array): number {
  const rcode = parseMessage(octets)?.rcode ?? 0
  return rcode === 0 ? -1 : rcode
}

function composeQuery(zone: Uint8Array, id: number, soa: ResourceRecord | undefined): Uint8Array {
  const type = soa === undefined ? RRType.AXFR : RRType.IXFR
  return composeMessage({
    id,
    opcode: Opcode.QUERY,
    flags: 0,
    rcode: 0,
    question: { name: zone, type, rrclass: RRClass.IN },
    answer: [],
    authority: soa === undefined ? [] : [soa],
    additional: [],
    edns: undefined,
  })
}
