import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Algorithm, schemeOf } from '../../../src/dns/dnssec/algorithms.ts'
import {
  FLAGS_KSK,
  FLAGS_ZSK,
  generatePrivateKey,
  type SigningKey,
  signingKey,
} from '../../../src/dns/dnssec/dnskey.ts'
import { coveredType, type SignedSet, verifySet } from '../../../src/dns/dnssec/rrsig.ts'
import { printType, RRType } from '../../../src/dns/iana/types.ts'
import type { Response } from '../../../src/dns/message/response.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { nameOctetsAt } from '../../../src/dns/name/name-at.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import type { Handler } from '../../../src/plugin/handler.ts'
import { dnssec } from '../../../src/plugins/dnssec/setup.ts'
import { keyId } from '../../../src/signing/keys/key-name.ts'
import { printPrivateText } from '../../../src/signing/keys/private-text.ts'
import { printPublicText } from '../../../src/signing/keys/public-text.ts'
import { SetUp } from '../../support/setup.ts'
import { type Question, transaction } from '../../support/transaction.ts'
import { wire } from '../../support/zone-names.ts'

export { FLAGS_KSK, FLAGS_ZSK }

/** A key pair, and the path of its files without the ending. */
export interface WrittenKey {
  readonly key: SigningKey
  readonly path: string
}

/** Makes a key pair of `zone` and writes its files. */
export async function writeKey(
  directory: string,
  zone: string,
  { flags = FLAGS_KSK, algorithm = Algorithm.EcdsaP256 as number } = {},
): Promise<WrittenKey> {
  mkdirSync(directory, { recursive: true })
  const key = signingKey(await generatePrivateKey(algorithm), algorithm, flags)
  const apex = wire(zone)
  const path = join(directory, keyId(apex, algorithm, key.tag))
  writeFileSync(`${path}.key`, printPublicText({ zone: apex, dnskey: key.dnskey }), { mode: 0o644 })
  const { privateKey } = key
  writeFileSync(`${path}.private`, printPrivateText({ algorithm, privateKey, times: {} }), {
    mode: 0o600,
  })
  return { key, path }
}

const SECTIONS = new Map([
  [Section.Answer, 'answer'],
  [Section.Authority, 'authority'],
  [Section.Additional, 'additional'],
])

interface Found extends SignedSet {
  readonly section: string
  readonly rrsigs: Uint8Array[]
  readonly rdata: Uint8Array[]
  ttlSeconds: number
}

/**
 * Each RRset of a reply, in order: `answer www.example.org. A 60 192.0.2.1, 192.0.2.2`, with ` unsigned` or ` bogus` if it
 * has no signature, or one that is wrong for all keys. SOAs are without their content.
 */
export function printSigned(response: Response, keys: readonly SigningKey[]): string[] {
  return setsOf(response).map((set) => {
    const { section, owner, type, ttlSeconds, rdata, rrsigs } = set
    const verified = rrsigs.every((rrsig) => {
      return keys.some(({ dnskey }) => {
        return (
          dnskey[3] === rrsig[2] && verifySet({ owner, type, ttlSeconds, rdata }, rrsig, dnskey)
        )
      })
    })
    const state = rrsigs.length === 0 ? ' unsigned' : verified ? '' : ' bogus'
    const text = rdata
      .map((one) => printRdata(type, one))
      .sort()
      .join(', ')
    const content = type === RRType.SOA || type === RRType.DNSKEY ? '' : ` ${text}`
    return `${section} ${printName(owner)} ${printType(type)} ${ttlSeconds}${content}${state}`
  })
}

function setsOf(response: Response): Found[] {
  const found = new Map<string, Found>()
  const rrsigs: { key: string; rrsig: Uint8Array }[] = []
  for (let i = 0; i < response.count; i++) {
    const at = response.ownerOffset[i]!
    const owner = response.ownerBytes[i]!
    const name = owner.slice(at, at + nameOctetsAt(owner, at))
    const start = response.rdataOffset[i]!
    const rdata = response.rdataBytes[i]!.slice(start, start + response.rdataOctets[i]!)
    const section = SECTIONS.get(response.section[i] as Section)!
    const type = response.type[i]!
    const keyFor = (type: number): string => `${section} ${printName(name)} ${type}`
    if (type === RRType.RRSIG) {
      rrsigs.push({ key: keyFor(coveredType(rdata)), rrsig: rdata })
      continue
    }
    const ttlSeconds = response.ttlSeconds[i]!
    const set = found.get(keyFor(type))
    if (set === undefined) {
      found.set(keyFor(type), {
        section,
        owner: name,
        type,
        ttlSeconds,
        rdata: [rdata],
        rrsigs: [],
      })
    } else set.rdata.push(rdata)
  }
  for (const { key, rrsig } of rrsigs) {
    const set = found.get(key)
    if (set === undefined) throw new Error(`a signature of nothing: ${key}`)
    set.rrsigs.push(rrsig)
  }
  return [...found.values()]
}

/** Octets of a signature of an algorithm with curves. */
export function signatureOctets(algorithm: number): number {
  return (schemeOf(algorithm)!.octets ?? 0) * 2
}

/** Starts the directive with these keys. */
export async function start(t: Test, keys: readonly WrittenKey[], properties = ''): Promise<SetUp> {
  const files = keys.map(({ path }) => path).join(' ')
  const c = new SetUp(dnssec, `dnssec {\n key file ${files}\n ${properties}\n}`)
  await c.start()
  t.teardown(() => c.stop())
  return c
}

/** Asks the link with DO. */
export function ask(handler: Handler, question: Question, compactOk = false) {
  const tx = transaction({ dnssecOk: true, payloadOctets: 1232, ...question })
  tx.query.compactOk = compactOk
  const status = handler.serve(tx) as number
  return { tx, status, response: tx.response }
}
