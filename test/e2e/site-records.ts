import { Random } from '../../src/base/random.ts'
import type { Question } from '../support/client.ts'
import { ZONE } from './sites.ts'

/** Names `e0`, `e1`, … that edits add and remove, at any site. */
const EDITED = 8
const CODES = ['GEO-EU', 'GEO-NA', '*']

interface Endpoint {
  readonly dnsName: string
  readonly recordType: string
  readonly target: string
  readonly id: string
  readonly weight?: number
  readonly code?: string
}

/** The records of one of several sites, which share most hosts; each edit changes some of them. */
export class SiteRecords {
  readonly #site: number
  readonly #random: Random
  readonly #edited = new Map<number, Endpoint>()
  #weight = 100
  #last = 1

  constructor(site: number) {
    this.#site = site
    this.#random = new Random(site + 1)
  }

  /** Hosts that one client always gets the same answer for. */
  static hosts(): readonly string[] {
    return ['geo', 'own0', 'own1', 'own2'].map((host) => `${host}.${ZONE}`)
  }

  static question(random: Random): Question {
    const [host, type] = QUESTIONS[random.below(QUESTIONS.length)]!
    const label = `r${random.below(1000)}`
    const name = host.replace('RANDOM', label).replace('EDITED', `e${random.below(EDITED)}`)
    return { name: name === '@' ? ZONE : `${name}.${ZONE}`, type }
  }

  /** Changes something; returns the new manifest. */
  edit(): string {
    const kind = this.#random.below(4)
    if (kind === 0) this.#weight = 1 + this.#random.below(200)
    else if (kind === 1) this.#last = 1 + this.#random.below(250)
    else this.#editName()
    return this.text()
  }

  text(): string {
    const own = `own${this.#site}`
    const klb = `klb.www.${ZONE}`
    const leaf = `${this.#site}.${klb}`
    const one = { id: `site${this.#site}`, weight: this.#weight, target: this.#address() }
    const at = (host: string, recordType: string): Endpoint => {
      return { ...one, dnsName: `${host}.${ZONE}`, recordType }
    }
    const v6 = { target: `2001:db8:${this.#site}::${this.#last}` }
    const records: readonly (readonly [host: string, endpoints: readonly Endpoint[]])[] = [
      ['geo', [{ ...at('geo', 'A'), code: CODES[this.#site]! }]],
      ['multi', [at('multi', 'A'), { ...at('multi', 'AAAA'), ...v6 }]],
      ['*.wild', [at('*.wild', 'A')]],
      [own, [at(own, 'A')]],
      [
        'www',
        [
          { ...at('www', 'CNAME'), target: klb, id: '' },
          { ...at('klb.www', 'CNAME'), target: leaf },
          { ...at(`${this.#site}.klb.www`, 'A'), id: '' },
        ],
      ],
      ...[...this.#edited].map(([number, endpoint]) => [`e${number}`, [endpoint]] as const),
    ]
    return records.map(([host, endpoints]) => recordOf(host, endpoints)).join('\n---\n')
  }

  #address(): string {
    return `192.0.${2 + this.#site}.${this.#last}`
  }

  #editName(): void {
    const number = this.#random.below(EDITED)
    if (this.#edited.delete(number)) return
    const isDeep = this.#random.below(2) === 0
    this.#edited.set(number, {
      dnsName: `${isDeep ? 'deep.er.' : ''}e${number}.${ZONE}`,
      recordType: 'A',
      target: this.#address(),
      id: `site${this.#site}`,
      weight: this.#weight,
    })
  }
}

function recordOf(host: string, endpoints: readonly Endpoint[]): string {
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: host.replace('*', 'any') },
    spec: {
      rootHost: `${host}.${ZONE}`,
      endpoints: endpoints.map(({ dnsName, recordType, target, id, weight, code }) => ({
        ...{ dnsName, recordType, recordTTL: 1, targets: [target] },
        ...(id === '' ? {} : { setIdentifier: id, providerSpecific: settings(weight, code) }),
      })),
    },
  })
}

function settings(weight: number | undefined, code: string | undefined): unknown[] {
  return [
    ...(weight === undefined ? [] : [{ name: 'weight', value: String(weight) }]),
    ...(code === undefined ? [] : [{ name: 'geo-code', value: code }]),
  ]
}

const QUESTIONS: readonly (readonly [host: string, type: string])[] = [
  ['geo', 'A'],
  ['geo', 'AAAA'],
  ['multi', 'A'],
  ['multi', 'AAAA'],
  ['multi', 'TXT'],
  ['www', 'A'],
  ['www', 'AAAA'],
  ['klb.www', 'CNAME'],
  ['RANDOM.wild', 'A'],
  ['RANDOM.wild', 'AAAA'],
  ['wild', 'A'],
  ['own0', 'A'],
  ['own1', 'A'],
  ['own2', 'A'],
  ['EDITED', 'A'],
  ['EDITED', 'TXT'],
  ['er.EDITED', 'A'],
  ['deep.er.EDITED', 'A'],
  ['RANDOM.EDITED', 'A'],
  ['RANDOM', 'A'],
  ['@', 'SOA'],
  ['@', 'NS'],
  ['@', 'DNSKEY'],
  ['@', 'CDS'],
]
