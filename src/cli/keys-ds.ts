import { InputError } from '../base/errors.ts'
import { ask, questionOf } from '../client/ask.ts'
import { printAlgorithm } from '../dns/dnssec/algorithms.ts'
import { composeDs, matchesDs } from '../dns/dnssec/ds.ts'
import { type HostPort, printHostPort } from '../dns/host-port.ts'
import { printRcode, Rcode, RRType } from '../dns/iana/index.ts'
import { equalNames, printName } from '../dns/name/name.ts'
import { printRdata } from '../dns/rdata/index.ts'
import type { StoredKey } from '../signing/keys/key-store.ts'
import { isKeySigning } from '../signing/keys/public-text.ts'
import { printData } from './data-format.ts'
import type { KeysArgs } from './keys-args.ts'
import type { Output } from './output.ts'

const TIMEOUT_MS = 3000
const TRIES = 3

/** A DS that the parent should have. */
interface WantedDs {
  readonly id: string
  readonly tag: number
  readonly algorithm: string
  /** As a line of a zone file. */
  readonly record: string
  /** Undefined = the parent was not asked. */
  readonly isAtParent: boolean | undefined
}

interface DsKeys {
  /** All keys of the zone. */
  readonly keys: readonly StoredKey[]
  /** Whether the parent should have the DS of a key now. */
  readonly isWanted: (key: StoredKey) => boolean
  /** The server wants no DS now. */
  readonly hasNoDs: boolean
}

/** Says that no DS is wanted now. */
export function printNoDs(zone: Uint8Array): string {
  return `the parent should have no DS of ${printName(zone)} now; sextant keys list shows the next step`
}

/** `keys ds`: prints the DS of a zone, and compares it with that of the parent. @throws InputError. */
export async function printDs(
  { keys, isWanted, hasNoDs }: DsKeys,
  { zone: apex, digest, parent, format }: KeysArgs,
  output: Output,
): Promise<number> {
  const zone = apex!
  const early = printNoDs(zone)
  if (hasNoDs && parent === undefined) throw new InputError(undefined, early)
  const all = keys.filter(({ flags }) => isKeySigning(flags))
  const signers = hasNoDs ? [] : all.filter(isWanted)
  if (signers.length === 0 && !hasNoDs) {
    const fix = 'sextant keys generate makes one'
    throw new InputError(undefined, `${printName(zone)} has no CSK and no KSK; ${fix}`)
  }
  const found = parent === undefined ? undefined : await askParent(zone, parent)
  const wanted = signers.map(({ id, tag, algorithm, dnskey }): WantedDs => {
    const isAtParent = found?.some((ds) => matchesDs(zone, dnskey, ds))
    const record = printRecord(zone, composeDs(zone, dnskey, digest))
    return { id, tag, algorithm: printAlgorithm(algorithm), record, isAtParent }
  })
  const others = (found ?? [])
    .filter((ds) => !signers.some(({ dnskey }) => matchesDs(zone, dnskey, ds)))
    .map((ds) => {
      const key = all.find(({ dnskey }) => matchesDs(zone, dnskey, ds))
      return { record: printRecord(zone, ds), id: key?.id }
    })
  const server = parent === undefined ? '' : printHostPort(parent)
  printData(output, format, {
    data: () => ({
      ds: wanted,
      ...(found === undefined
        ? {}
        : { parent: server, others: others.map(({ record }) => record) }),
    }),
    table: () => [
      ...(hasNoDs ? [`; ${early}`] : []),
      ...(hasNoDs && others.length === 0 ? [`; ${server} has no DS`] : []),
      ...wanted.flatMap(({ record, isAtParent }) => [record, ...comment(server, isAtParent)]),
      ...others.map(({ record, id }) => `; ${server} also has a DS ${ofKey(id)}: ${record}`),
    ],
  })
  return 0
}

function ofKey(id: string | undefined): string {
  return id === undefined ? 'that no key matches' : `of ${id}, which it should not have now`
}

function comment(server: string, isAtParent: boolean | undefined): string[] {
  if (isAtParent === undefined) return []
  return [`; ${server} ${isAtParent ? 'has a DS of this key' : 'has no DS of this key'}`]
}

function printRecord(zone: Uint8Array, ds: Uint8Array): string {
  return `${printName(zone)} IN DS ${printRdata(RRType.DS, ds)}`
}

/** Returns the DS rdata that a nameserver of the parent has; none = the delegation is unsigned. @throws InputError. */
async function askParent(zone: Uint8Array, server: HostPort): Promise<readonly Uint8Array[]> {
  const query = questionOf(zone, RRType.DS)
  const answered = await ask({ server, query, tries: TRIES, timeoutMs: TIMEOUT_MS })
  const fault = (reason: string): InputError =>
    new InputError(undefined, `the parent ${printHostPort(server)} sent no DS: ${reason}`)
  if (answered.kind === 'failed') throw fault(answered.reason)
  const { rcode, answer, authority } = answered.message
  if (rcode !== Rcode.NOERROR) throw fault(`its answer is ${printRcode(rcode)}`)
  const found = answer.filter(({ type, owner }) => type === RRType.DS && equalNames(owner, zone))
  // A server without the parent zone refers to another one.
  const isReferral = answer.length === 0 && !authority.some(({ type }) => type === RRType.SOA)
  if (isReferral) throw fault('it does not serve the parent zone')
  return found.map(({ rdata }) => rdata)
}
