import { createPublicKey } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { publicKeyOf } from '../../../src/dns/dnssec/dnskey.ts'
import { algorithmOf, expirationOf, inceptionOf } from '../../../src/dns/dnssec/rrsig.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { printRollState, scanRollState } from '../../../src/signing/rolls/roll-state.ts'
import { type RunningServer, runSextant, startServer } from '../../support/server.ts'
import { until } from '../../support/until.ts'
import type { WireMessage } from '../../support/wire.ts'
import {
  ask,
  type Dnskey,
  faultsOfSignatures,
  isDsOf,
  isSignedBy,
  type Rrset,
  readDnskey,
  rrsetsOf,
  typesAt,
} from './signed-apex.ts'

// Long: it starts a server with many zones, and a process for the DS of each.

/* The rules of Zonemaster's DNSSEC test cases, for each kind of zone, algorithm and denial. */

const ALGORITHMS = { ECDSAP256SHA256: 13, ECDSAP384SHA384: 14, ED25519: 15, RSASHA256: 8 } as const
const DENIALS = ['nsec', 'nsec3', 'nsec3 opt-out', 'compact']
const DS = `1 13 2 ${'00'.repeat(32)}`
const ZONE = `$TTL 300
@ SOA ns hostmaster 1 3600 600 604800 300
@ NS ns
ns A 192.0.2.1
www A 192.0.2.2
*.wild TXT "any"
insecure NS ns.insecure
ns.insecure A 192.0.2.3
secure NS ns.secure
secure DS ${DS}
ns.secure A 192.0.2.4
`

interface Kind {
  readonly zone: string
  readonly source: 'file' | 'kuadrant'
  readonly denial: string
  readonly isSplit: boolean
  readonly algorithm: keyof typeof ALGORITHMS
}

/** Each source with each denial and kind of keys; each algorithm with each of them, too. */
const KINDS: readonly Kind[] = ['file', 'kuadrant'].flatMap((source, s) => {
  return DENIALS.flatMap((denial, d) => {
    return [false, true].map((isSplit, k): Kind => {
      const names = Object.keys(ALGORITHMS) as (keyof typeof ALGORITHMS)[]
      const algorithm = names[(s * 2 + d + k) % names.length]!
      const zone = `z${s * 8 + d * 2 + k}.example.`
      return { zone, source: source as Kind['source'], denial, isSplit, algorithm }
    })
  })
})

/** What a test asks of a zone: by name below the apex and type. */
interface Child extends Kind {
  readonly ds: readonly Uint8Array[]
  readonly keys: readonly Dnskey[]
  readonly ask: (name: string, type: number) => Promise<WireMessage>
  /** The RRset of the apex; without records if there is none. */
  readonly apex: (type: number) => Promise<Rrset>
}

function manifest(zone: string): string {
  const host = `www.${zone.slice(0, -1)}`
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: app, namespace: default }
spec:
  rootHost: ${host}
  endpoints:
  - { dnsName: ${host}, recordType: A, recordTTL: 60, targets: [192.0.2.1], setIdentifier: one, providerSpecific: [{ name: weight, value: "2" }] }
  - { dnsName: ${host}, recordType: A, recordTTL: 60, targets: [192.0.2.2], setIdentifier: two, providerSpecific: [{ name: weight, value: "1" }] }
`
}

function blockOf({ zone, source, denial, isSplit, algorithm }: Kind): string {
  const serving = source === 'file' ? 'file zone' : `kuadrant {\n  manifests ${zone}d\n }`
  const keys = `keys keys\n  algorithm ${algorithm}\n  denial ${denial}${isSplit ? '\n  split' : ''}`
  return `${zone}:{PORT} {\n bind 127.0.0.1\n dnssec {\n  ${keys}\n }\n ${serving}\n}\n`
}

async function childOf(port: number, directory: string, kind: Kind): Promise<Child> {
  const { zone } = kind
  const askFor = (name: string, type: number): Promise<WireMessage> => ask(port, name + zone, type)
  const apex = async (type: number): Promise<Rrset> => {
    const sets = rrsetsOf((await askFor('', type)).answer)
    const found = sets.find((set) => set.owner === zone && set.type === type)
    return found ?? { owner: zone, type, rdata: [], rrsigs: [] }
  }
  await until(async () => (await apex(RRType.CDS)).rdata.length > 0, `CDS of ${zone}`)
  const { stdout, stderr } = await runSextant(directory, ['keys', 'ds', zone, '-keys', 'keys'])
  const ds = [...stdout.matchAll(/^\S+\s.*\bDS (\d+) (\d+) (\d+) ([0-9A-Fa-f]+)$/gm)].map(
    ([, tag, algorithm, digest, octets]) => {
      const head = [Number(tag) >> 8, Number(tag) & 255, Number(algorithm), Number(digest)]
      return Buffer.concat([Buffer.from(head), Buffer.from(octets!, 'hex')])
    },
  )
  if (ds.length === 0) throw new Error(`no DS of ${zone}: ${stdout} ${stderr}`)
  const keys = (await apex(RRType.DNSKEY)).rdata.map(readDnskey)
  return { ...kind, ds, keys, ask: askFor, apex }
}

const ZONE_FLAG = 0x0100
const SEP_FLAG = 0x0001
const DAY_SECONDS = 86_400

function keyOfDs(ds: Uint8Array, { zone, keys }: Child): Dnskey | undefined {
  return keys.find((key) => isDsOf(ds, zone, key))
}

function signsWith(set: Rrset, key: Dnskey | undefined): boolean {
  return key !== undefined && set.rrsigs.some((rrsig) => isSignedBy(set, rrsig, [key]))
}

/** Checks DNSKEY records, each against all DS or CDS. */
async function faultsOfDs(child: Child, records: readonly Uint8Array[]): Promise<string[]> {
  const dnskey = await child.apex(RRType.DNSKEY)
  return records.flatMap((record) => {
    const key = keyOfDs(record, child)
    if (key === undefined) return ['no DNSKEY matches']
    return [
      (key.flags & ZONE_FLAG) === 0 ? 'the key lacks the zone flag' : '',
      (key.flags & SEP_FLAG) === 0 ? 'the key lacks the SEP flag' : '',
      signsWith(dnskey, key) ? '' : 'the key does not sign DNSKEY',
    ]
  })
}

/** The parts of NSEC3 or NSEC3PARAM rdata that are fixed (RFC 9276). */
function faultsOfNsec3(rdata: Uint8Array, flags: number): string[] {
  return [
    rdata[0] === 1 ? '' : `hash algorithm ${rdata[0]}`,
    rdata[1] === flags ? '' : `flags ${rdata[1]}`,
    rdata[2] === 0 && rdata[3] === 0 ? '' : 'more than 0 iterations',
    rdata[4] === 0 ? '' : 'a salt',
  ]
}

function faultsOfTimes({ rrsigs }: Rrset): string[] {
  const nowSeconds = Date.now() / 1000
  return rrsigs.flatMap((rrsig) => {
    const left = expirationOf(rrsig) - nowSeconds
    return [
      left > DAY_SECONDS / 2 ? '' : 'it expires within 12 hours',
      left < 180 * DAY_SECONDS ? '' : 'it expires in more than 180 days',
      expirationOf(rrsig) - inceptionOf(rrsig) < 180 * DAY_SECONDS ? '' : 'it lasts too long',
    ]
  })
}

/** The record that proves what the apex has: a NODATA reply with one NSEC or NSEC3 record. */
async function faultsOfApexProof(child: Child, asked: number, proof: number): Promise<string[]> {
  const { rcode, flags, answer, authority } = await child.ask('', asked)
  const sets = rrsetsOf(authority)
  const found = sets.filter(({ type }) => type === RRType.NSEC || type === RRType.NSEC3)
  const [first] = found
  if (first === undefined) return ['no proof']
  const rdata = first.rdata[0]!
  const isNsec3 = proof === RRType.NSEC3
  let at = isNsec3 ? 6 + rdata[5]! : 0
  while (!isNsec3 && rdata[at]! > 0) at += rdata[at]! + 1
  const types = typesAt(rdata, isNsec3 ? at : at + 1)
  const needed = ['SOA', 'NS', 'DNSKEY', 'RRSIG', isNsec3 ? 'NSEC3PARAM' : 'NSEC']
  const wrong = isNsec3 ? ['NSEC', 'NSEC3'] : ['NSEC3PARAM', 'NSEC3']
  const soa = sets.find(({ type }) => type === RRType.SOA)
  return [
    rcode === 0 && (flags & 0x0400) !== 0 ? '' : `rcode ${rcode}, flags ${flags}`,
    answer.length === 0 ? '' : 'an answer',
    found.length === 1 && first.rdata.length === 1 ? '' : 'more than one proof',
    first.type === proof ? '' : 'the wrong kind of proof',
    soa?.owner === child.zone ? '' : 'no SOA of the zone',
    isNsec3 || first.owner === child.zone ? '' : 'not of the apex',
    needed.every((type) => types.includes(type)) ? '' : `types ${types}`,
    wrong.some((type) => types.includes(type)) ? `types ${types}` : '',
    ...faultsOfSignatures(first, child.keys),
  ]
}

/** Checks that the RRset is there, and signed by keys of the apex, that of the DS included. */
async function faultsOfParentSet(child: Child, type: number): Promise<string[]> {
  const set = await child.apex(type)
  const isTrusted = child.ds.some((ds) => signsWith(set, keyOfDs(ds, child)))
  return [
    set.rdata.length > 0 ? '' : 'missing',
    ...faultsOfSignatures(set, child.keys),
    isTrusted ? '' : 'no key of the DS signs it',
  ]
}

/** Empty texts are no faults. */
type Check = (child: Child) => Promise<readonly string[]>

const CHECKS: Readonly<Record<string, Check>> = {
  'DNSSEC01: digests of DS are SHA-256 or SHA-384, one is SHA-256': async ({ ds }) => [
    ds.every((one) => one[3] === 2 || one[3] === 4) ? '' : 'another digest',
    ds.some((one) => one[3] === 2) ? '' : 'no SHA-256',
  ],
  'DNSSEC02: each DS matches a key that signs DNSKEY': (child) => faultsOfDs(child, child.ds),
  'DNSSEC03: NSEC3 has no iterations and no salt': async (child) => {
    const sets = rrsetsOf((await child.ask('nope.', RRType.A)).authority)
    const param = await child.apex(RRType.NSEC3PARAM)
    const records = sets.filter(({ type }) => type === RRType.NSEC3).flatMap(({ rdata }) => rdata)
    const isNsec3 = child.denial.startsWith('nsec3')
    return [
      records.length > 0 === isNsec3 ? '' : `${records.length} NSEC3 records`,
      param.rdata.length === Number(isNsec3) ? '' : `${param.rdata.length} NSEC3PARAM records`,
      ...records.flatMap((one) => faultsOfNsec3(one, child.denial.endsWith('opt-out') ? 1 : 0)),
      ...param.rdata.flatMap((one) => faultsOfNsec3(one, 0)),
    ]
  },
  'DNSSEC04: signatures are neither too short nor too long': async ({ apex }) => [
    ...faultsOfTimes(await apex(RRType.DNSKEY)),
    ...faultsOfTimes(await apex(RRType.SOA)),
  ],
  'DNSSEC05: the algorithm of all keys is that of the policy': async ({ keys, algorithm }) =>
    keys.map((key) => (key.algorithm === ALGORITHMS[algorithm] ? '' : `${key.algorithm}`)),
  'DNSSEC06: a DNSKEY reply has RRSIG': async ({ apex }) => [
    (await apex(RRType.DNSKEY)).rrsigs.length > 0 ? '' : 'no RRSIG',
  ],
  'DNSSEC07: DNSKEY and DS are both there': async ({ keys, ds }) => [
    keys.length > 0 && ds.length > 0 ? '' : `${keys.length} DNSKEY, ${ds.length} DS`,
  ],
  'DNSSEC08: signatures of DNSKEY are valid': async ({ apex, keys }) =>
    faultsOfSignatures(await apex(RRType.DNSKEY), keys),
  'DNSSEC09: signatures of SOA are valid': async ({ apex, keys }) =>
    faultsOfSignatures(await apex(RRType.SOA), keys),
  'DNSSEC10: one kind of denial, with the right types of the apex': async (child) => {
    const isNsec3 = child.denial.startsWith('nsec3')
    const [asked, proof, own] = isNsec3
      ? [RRType.NSEC, RRType.NSEC3, RRType.NSEC3PARAM]
      : [RRType.NSEC3PARAM, RRType.NSEC, RRType.NSEC]
    const set = await child.apex(own)
    return [
      ...(await faultsOfApexProof(child, asked, proof)),
      ...faultsOfSignatures(set, child.keys),
    ]
  },
  'DNSSEC11: a zone with DS is signed': async ({ apex, keys }) =>
    faultsOfSignatures(await apex(RRType.NS), keys),
  'DNSSEC12: each algorithm of DS signs DNSKEY': async ({ apex, ds }) => {
    const { rrsigs } = await apex(RRType.DNSKEY)
    return ds.map((one) => (rrsigs.some((rrsig) => algorithmOf(rrsig) === one[2]) ? '' : 'missing'))
  },
  'DNSSEC13: each algorithm of DNSKEY signs DNSKEY, SOA and NS': async ({ apex, keys }) => {
    const sets = await Promise.all([RRType.DNSKEY, RRType.SOA, RRType.NS].map(apex))
    return sets.flatMap((set) =>
      keys.map(({ algorithm }) => {
        return set.rrsigs.some((rrsig) => algorithmOf(rrsig) === algorithm) ? '' : `${set.type}`
      }),
    )
  },
  'DNSSEC14: RSA keys have 2048 to 4096 bits': async ({ keys }) =>
    keys.map(({ algorithm, rdata }) => {
      if (algorithm !== ALGORITHMS.RSASHA256) return ''
      const pem = publicKeyOf(rdata).export({ type: 'spki', format: 'pem' })
      const bits = createPublicKey(pem).asymmetricKeyDetails?.modulusLength ?? 0
      return bits >= 2048 && bits <= 4096 ? '' : `${bits} bits`
    }),
  'DNSSEC15: CDS and CDNSKEY are both there and agree': async (child) => {
    const [cds, cdnskey] = await Promise.all([RRType.CDS, RRType.CDNSKEY].map(child.apex))
    const keys = cdnskey!.rdata.map(readDnskey)
    return [
      cds!.rdata.length > 0 && keys.length > 0 ? '' : 'missing',
      ...cds!.rdata.map((one) =>
        keys.some((key) => isDsOf(one, child.zone, key)) ? '' : 'no CDNSKEY of a CDS',
      ),
      ...keys.map((key) =>
        cds!.rdata.some((one) => isDsOf(one, child.zone, key)) ? '' : 'no CDS of a CDNSKEY',
      ),
    ]
  },
  'DNSSEC16: each CDS matches a key that signs CDS and DNSKEY': async (child) => {
    const set = await child.apex(RRType.CDS)
    return [
      ...faultsOfSignatures(set, child.keys),
      ...(await faultsOfDs(child, set.rdata)),
      ...set.rdata.map((one) => (signsWith(set, keyOfDs(one, child)) ? '' : 'not by its key')),
    ]
  },
  'DNSSEC17: each CDNSKEY is a key that signs CDNSKEY and DNSKEY': async (child) => {
    const set = await child.apex(RRType.CDNSKEY)
    const dnskey = await child.apex(RRType.DNSKEY)
    return set.rdata.flatMap((one) => {
      const key = child.keys.find(({ rdata }) => Buffer.compare(rdata, one) === 0)
      return [
        key === undefined ? 'no DNSKEY matches' : '',
        signsWith(set, key) && signsWith(dnskey, key) ? '' : 'not signed by it',
      ]
    })
  },
  'DNSSEC18: a key of the DS signs CDS and CDNSKEY': async (child) => [
    ...(await faultsOfParentSet(child, RRType.CDS)),
    ...(await faultsOfParentSet(child, RRType.CDNSKEY)),
  ],
  'the keys are those that the directive asks for': async ({ keys, isSplit }) => {
    const flags = keys.map((key) => key.flags).sort()
    return [flags.join() === (isSplit ? '256,257' : '257') ? '' : flags.join()]
  },
  'a ZSK does not sign DNSKEY, a KSK nothing but keys, and both sign CDS': async ({
    apex,
    keys,
    isSplit,
  }) => {
    if (!isSplit) return []
    const zsk = keys.find(({ flags }) => flags === 256)
    const ksk = keys.find(({ flags }) => flags === 257)
    return [
      signsWith(await apex(RRType.DNSKEY), zsk) ? 'the ZSK signs DNSKEY' : '',
      signsWith(await apex(RRType.CDS), zsk) ? '' : 'the ZSK does not sign CDS',
      signsWith(await apex(RRType.SOA), ksk) ? 'the KSK signs SOA' : '',
    ]
  },
  'referrals: NS and glue have no signature, DS and proofs have one': async (child) => {
    if (child.source !== 'file') return []
    const found: string[] = []
    for (const cut of ['secure', 'insecure']) {
      const { answer, authority, additional } = await child.ask(`www.${cut}.`, RRType.A)
      const sets = [...rrsetsOf(authority), ...rrsetsOf(additional)]
      const proof =
        cut === 'secure' ? RRType.DS : child.denial.startsWith('nsec3') ? RRType.NSEC3 : RRType.NSEC
      if (answer.length > 0) found.push('an answer')
      if (!sets.some(({ type }) => type === proof)) found.push(`${cut}: no DS and no proof`)
      for (const set of sets) {
        const isBelow = set.type === RRType.NS || set.type === RRType.A
        if (!isBelow) found.push(...faultsOfSignatures(set, child.keys))
        else if (set.rrsigs.length > 0) found.push(`${set.owner} ${set.type} is signed`)
      }
    }
    return found
  },
}

function statePaths(directory: string): string[] {
  return KINDS.map(({ zone }) => join(directory, 'keys', `rolls-${zone.slice(0, -1)}.state`))
}

/** True once all keys are published. */
function isPublished(directory: string): boolean {
  return statePaths(directory).every((path) => {
    if (!existsSync(path)) return false
    const { dnskey, signers } = scanRollState(readFileSync(path, 'utf8'))
    return dnskey.isKnown && signers.isKnown
  })
}

/** Changes the state of the rolls as if the keys had been published long ago: then the parent is asked for the DS. */
function passTime(directory: string): void {
  for (const path of statePaths(directory)) {
    const state = scanRollState(readFileSync(path, 'utf8'))
    const { dnskey, signers } = state
    const past = { dnskey: { ...dnskey, older: [] }, signers: { ...signers, older: [] } }
    writeFileSync(path, printRollState({ ...state, ...past, claim: undefined }))
  }
}

/** Starts a server with all zones, some time after their keys were published. */
async function serve(t: Test): Promise<RunningServer> {
  const manifests = KINDS.map(({ zone }) => [`${zone}d/app.yaml`, manifest(zone)])
  const corefile = KINDS.map(blockOf).join('')
  const files = { zone: ZONE, ...Object.fromEntries(manifests) }
  const first = await startServer(t, { corefile, files })
  const { directory } = first
  await until(() => isPublished(directory), 'the keys to be published')
  first.process.kill('SIGTERM')
  await first.exited()
  passTime(directory)
  return startServer(t, { corefile, beside: first })
}

t.test('rules of Zonemaster', async (t: Test) => {
  const server = await serve(t)
  for (const kind of KINDS) {
    const { source, denial, algorithm, isSplit } = kind
    const what = `${source}, ${denial}, ${algorithm}, ${isSplit ? 'KSK and ZSK' : 'CSK'}`
    const child = await childOf(server.port, server.directory, kind)
    for (const [name, check] of Object.entries(CHECKS)) {
      const faults = (await check(child)).filter((fault) => fault !== '')
      t.strictSame(faults, [], `${what}: ${name}`)
    }
  }
})
