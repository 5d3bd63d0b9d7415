import { Random } from '../../src/base/random.ts'
import { probeManifest } from '../support/manifest.ts'

/** Names `e0`, `e1`, … that edits add and remove. */
const EDITED_NAMES = 12
const WEIGHT_MAX = 200

/** Networks of clients by geo code; others match none. */
export const CLIENT_NETWORKS = {
  'GEO-EU': '198.51.100.0/24',
  US: '203.0.113.0/25',
  none: '203.0.113.128/25',
} as const

interface Settings {
  readonly id?: string
  readonly geo?: string
  readonly weight?: number
}

interface Endpoint {
  readonly dnsName: string
  readonly recordType: string
  readonly recordTTL: number
  readonly targets: readonly string[]
  readonly setIdentifier?: string
  readonly providerSpecific: readonly { readonly name: string; readonly value: string }[]
}

/**
 * The DNSRecords of a zone with every kind of steering, which change at random: names come and go, weights change, and
 * endpoints fail and recover.
 */
export class SteeredRecords {
  readonly #zone: string
  readonly #random: Random
  readonly #edited = new Map<number, Endpoint>()
  readonly #down = new Set<string>()
  #weights: number[] = [100, 50, 20, 1, 100]
  #ttl = 1

  /** `zone`: without the final dot. */
  constructor(zone: string, seed: number) {
    this.#zone = zone
    this.#random = new Random(seed)
  }

  /** The files of all records, path to content. */
  files(): Record<string, string> {
    return { [this.#path('records')]: this.#records(), [this.#path('health')]: this.#health() }
  }

  /** Changes something; returns the file that changed. */
  edit(): readonly [path: string, text: string] {
    const kind = this.#random.below(4)
    if (kind === 0) return this.#flap()
    if (kind === 1) this.#weights = this.#weights.map(() => this.#random.below(WEIGHT_MAX))
    else this.#editName()
    return [this.#path('records'), this.#records()]
  }

  /** A question, with random names where the zone has wildcards or nothing. */
  question(): { readonly name: string; readonly type: string } {
    const [name, type] = QUESTIONS[this.#random.below(QUESTIONS.length)]!
    const label = `r${this.#random.below(1_000_000)}`
    const edited = `e${this.#random.below(EDITED_NAMES)}`
    const owner = name.replace('RANDOM', label).replace('EDITED', edited)
    return { name: owner === '@' ? this.#zone : `${owner}.${this.#zone}`, type }
  }

  #path(what: string): string {
    return `zones/${this.#zone}-${what}.yaml`
  }

  #flap(): readonly [path: string, text: string] {
    const address = FLAPPING[this.#random.below(FLAPPING.length)]![1]
    if (!this.#down.delete(address)) this.#down.add(address)
    return [this.#path('health'), this.#health()]
  }

  #editName(): void {
    const number = this.#random.below(EDITED_NAMES)
    if (this.#edited.delete(number)) return
    this.#ttl = 1 + this.#random.below(3)
    const name = `e${number}`
    const octet = String(this.#random.below(250))
    const forms = [
      this.#endpoint(name, 'A', `192.0.2.${octet}`),
      this.#endpoint(name, 'TXT', `v=${octet}`),
      this.#endpoint(name, 'CNAME', `www.${this.#zone}`),
      this.#endpoint(`*.${name}`, 'A', `192.0.2.${octet}`),
      this.#endpoint(`deep.er.${name}`, 'HTTPS', `${1 + Number(octet)} . alpn=h2`),
    ]
    this.#edited.set(number, forms[this.#random.below(forms.length)]!)
    this.#ttl = 1
  }

  #endpoint(name: string, type: string, target: string, settings: Settings = {}): Endpoint {
    const { id, geo, weight } = settings
    const values = { 'geo-code': geo, weight: weight === undefined ? undefined : String(weight) }
    return {
      dnsName: `${name}.${this.#zone}`,
      recordType: type,
      recordTTL: this.#ttl,
      targets: [target],
      ...(id === undefined ? {} : { setIdentifier: id }),
      providerSpecific: Object.entries(values).flatMap(([key, value]) =>
        value === undefined ? [] : [{ name: key, value }],
      ),
    }
  }

  #record(
    name: string,
    endpoints: readonly Endpoint[],
    annotations: Readonly<Record<string, string>> = {},
  ): string {
    return JSON.stringify({
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: this.#recordName(name), annotations },
      spec: { rootHost: this.#zone, endpoints },
    })
  }

  #recordName(name: string): string {
    return `${name}.${this.#zone}`
  }

  #records(): string {
    const [first, second, third, fourth, fifth] = this.#weights as [
      ...[number, number, number, number, number],
    ]
    const at = (name: string, type: string, target: string, settings: Settings): Endpoint =>
      this.#endpoint(name, type, target, settings)
    const weighted = (name: string, network: string): Endpoint[] =>
      this.#weights.map((weight, i) =>
        at(name, 'A', `${network}.${i + 1}`, { id: `w${i + 1}`, weight }),
      )
    const geo = (name: string, type: string, prefix: string): Endpoint[] => [
      at(name, type, `${prefix}1`, { id: 'eu1', geo: 'GEO-EU', weight: first }),
      at(name, type, `${prefix}2`, { id: 'eu2', geo: 'GEO-EU', weight: second }),
      at(name, type, `${prefix}3`, { id: 'us', geo: 'US', weight: third }),
      at(name, type, `${prefix}4`, { id: 'any', geo: '*' }),
    ]
    const zone = this.#zone
    const main = [
      ...geo('geo', 'A', '192.0.2.'),
      ...geo('geo', 'AAAA', '2001:db8::'),
      ...geo('*.wa', 'A', '192.0.2.'),
      at('nodef', 'A', '192.0.2.9', { id: 'us', geo: 'US' }),
      at('cn', 'CNAME', `geo.${zone}`, { id: 'a', weight: fourth }),
      at('cn', 'CNAME', `closed.${zone}`, { id: 'b', weight: fifth }),
      at('www', 'CNAME', `cn.${zone}`, {}),
      at('*.w', 'CNAME', `www.${zone}`, {}),
      at('text', 'TXT', 'v=spf1 -all', {}),
      at('svc', 'HTTPS', '1 . alpn=h2', { id: 'a', geo: 'GEO-EU' }),
      at('svc', 'HTTPS', '2 . alpn=h3', { id: 'b', geo: '*' }),
      at('a.b.ent', 'TXT', 'deep', {}),
      ...this.#edited.values(),
    ]
    const closed = [
      at('closed', 'A', '192.0.2.21', { id: 'c1', weight: 10 }),
      at('closed', 'A', '192.0.2.22', { id: 'c2', weight: 20 }),
    ]
    const failover = [
      at('fo', 'A', '192.0.2.41', { id: 'eu', geo: 'GEO-EU' }),
      at('fo', 'A', '192.0.2.42', { id: 'us', geo: 'US' }),
      at('fo', 'A', '192.0.2.43', { id: 'spare', weight: 0 }),
    ]
    const shifted = [
      at('shift', 'A', '192.0.2.51', { id: 's1', weight: 100 }),
      at('shift', 'A', '192.0.2.52', { id: 's2', weight: 0 }),
    ]
    return [
      this.#record('main', main),
      this.#record('closed', closed, { 'sextant.io/all-down': 'closed' }),
      this.#record('failover', failover, { 'sextant.io/failover': 'GEO-EU: US, spare\n*: spare' }),
      this.#record('multi', weighted('multi', '192.0.3'), { 'sextant.io/answers': '2' }),
      this.#record('sticky', weighted('sticky', '192.0.4'), { 'sextant.io/sticky': '24 56' }),
      this.#record('shift', shifted, { 'sextant.io/shift': 'to=s2 steps=5%,50%,100% bake=20s' }),
    ].join('\n---\n')
  }

  #health(): string {
    return FLAPPING.map(([record, address]) =>
      probeManifest(this.#recordName(record), address, !this.#down.has(address)),
    ).join('')
  }
}

/** Endpoints that fail and recover: the record, and the address. */
const FLAPPING: readonly (readonly [record: string, address: string])[] = [
  ['main', '192.0.2.1'],
  ['main', '192.0.2.3'],
  ['closed', '192.0.2.21'],
  ['closed', '192.0.2.22'],
  ['failover', '192.0.2.41'],
  ['failover', '192.0.2.42'],
  ['multi', '192.0.3.1'],
  ['sticky', '192.0.4.1'],
]

const QUESTIONS: readonly (readonly [name: string, type: string])[] = [
  ['geo', 'A'],
  ['geo', 'AAAA'],
  ['geo', 'TXT'],
  ['RANDOM.geo', 'A'],
  ['RANDOM.wa', 'A'],
  ['RANDOM.wa', 'AAAA'],
  ['nodef', 'A'],
  ['nodef', 'AAAA'],
  ['closed', 'A'],
  ['closed', 'HTTPS'],
  ['multi', 'A'],
  ['sticky', 'A'],
  ['fo', 'A'],
  ['shift', 'A'],
  ['cn', 'CNAME'],
  ['www', 'A'],
  ['www', 'AAAA'],
  ['www', 'CNAME'],
  ['RANDOM.w', 'A'],
  ['RANDOM.w', 'TXT'],
  ['text', 'TXT'],
  ['svc', 'HTTPS'],
  ['ent', 'A'],
  ['a.b.ent', 'TXT'],
  ['RANDOM.b.ent', 'A'],
  ['@', 'SOA'],
  ['@', 'NS'],
  ['@', 'DNSKEY'],
  ['@', 'CDS'],
  ['@', 'A'],
  ['RANDOM', 'A'],
  ['EDITED', 'A'],
  ['EDITED', 'TXT'],
  ['RANDOM.EDITED', 'A'],
  ['deep.er.EDITED', 'HTTPS'],
  ['er.EDITED', 'A'],
]
