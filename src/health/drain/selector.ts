import { createHash } from 'node:crypto'
import { printLatin1 } from '../../base/latin1.ts'
import { didYouMean } from '../../base/nearest.ts'
import { RRType } from '../../dns/iana/types.ts'
import {
  type Address,
  type Cidr,
  isInNetwork,
  printAddress,
  scanAddress,
  scanCidr,
} from '../../dns/text/address.ts'
import { scanGeoCode } from '../../geo/code.ts'
import { geoCodeHint } from '../../geo/code-hint.ts'
import { ALIAS_TYPE, type Endpoint } from '../../records/dns-record.ts'
import { leadsToTheSame } from '../../records/kdrnt.ts'
import type { RecordContent } from '../../records/pack.ts'
import { printHost } from '../../records/print-endpoint.ts'
import { isForeign, type StoredRecord } from '../../records/record-source.ts'
import { lowerNameKey, scanHost } from '../../records/validate/names.ts'
import { printTerm } from './quoted-words.ts'
import { StarPattern } from './star-pattern.ts'

/** Longest value of a term, in characters. */
const VALUE_CHARACTERS_MAX = 1024
const ID_DIGITS = 8
/** `geo:default` selects default endpoints without a geo code. */
const GEO_DEFAULT = 'default'
const EXAMPLE = 'write it as site:dublin or host:app.example.com'

/** Types that lead clients to a site. Endpoints of other types, such as TXT and NS, are not drained. */
export const DRAINED_TYPES: ReadonlySet<number> = new Set([
  RRType.A,
  RRType.AAAA,
  RRType.CNAME,
  ALIAS_TYPE,
  RRType.MX,
  RRType.SRV,
  RRType.HTTPS,
  RRType.SVCB,
])

/** A record whose endpoints are selected. */
interface SelectedRecord {
  readonly record: StoredRecord
  readonly content: RecordContent
  /** Sites that reported each endpoint, in the record's order. */
  readonly sites: readonly (readonly string[])[]
}

/** One condition. Missing functions accept everything. */
interface Term {
  /** `host:app.example.com`, in canonical form. */
  readonly text: string
  /** Octets that the packed form of every matching record contains; '' = unknown. */
  readonly needle: string
  readonly acceptsRecord?: (record: StoredRecord) => boolean
  readonly acceptsEndpoint?: (at: SelectedRecord, index: number) => boolean
  readonly acceptsTarget?: (type: number, rdata: Uint8Array) => boolean
}

type ScanTerm = (value: string) => Omit<Term, 'text'> | undefined

const TERMS: ReadonlyMap<string, ScanTerm> = new Map(
  Object.entries<ScanTerm>({
    zone: scanZone,
    host: scanHostTerm,
    id: scanIdentifier,
    address: scanAddressTerm,
    geo: scanGeo,
    site: scanSite,
    record: scanRecord,
  }),
)
/** Terms whose values are case-insensitive. */
const LOWERED: ReadonlySet<string> = new Set(['zone', 'host', 'address'])

/** Selects endpoints, or single targets of endpoints: those that all terms accept. */
export class DrainSelector {
  /** The terms in a fixed order: equal for equal selectors. */
  readonly text: string
  /** Identifies the selector: hexadecimal digits of a digest of its text. */
  readonly id: string
  readonly #terms: readonly Term[]

  constructor(terms: readonly Term[]) {
    this.#terms = terms
    this.text = terms.map(({ text }) => text).join(' ')
    this.id = createHash('sha256').update(this.text).digest('hex').slice(0, ID_DIGITS)
  }

  /** Fast: false = the record has no selected endpoint. True = it may have some. */
  mayMatch(record: StoredRecord): boolean {
    return this.#terms.every(({ needle, acceptsRecord }) => {
      return acceptsRecord?.(record) !== false && (needle === '' || record.packed.includes(needle))
    })
  }

  /** Returns the indexes of the selected targets of an endpoint. */
  targetsOf(at: SelectedRecord, index: number): readonly number[] {
    const { type, rdata } = at.content.endpoints[index]!
    if (!DRAINED_TYPES.has(type)) return []
    const accepts = this.#terms.every(({ acceptsRecord, acceptsEndpoint }) => {
      return acceptsRecord?.(at.record) !== false && acceptsEndpoint?.(at, index) !== false
    })
    if (!accepts) return []
    return [...rdata.keys()].filter((i) => {
      return this.#terms.every(({ acceptsTarget }) => acceptsTarget?.(type, rdata[i]!) !== false)
    })
  }
}

/** Reads the terms of a selector, `KEY:VALUE` each. Returns a string that says what is wrong. */
export function scanDrainSelector(words: readonly string[]): DrainSelector | string {
  if (words.length === 0) return `the selector is missing; ${EXAMPLE}`
  const terms = new Map<string, Term>()
  for (const word of words) {
    const colon = word.indexOf(':')
    const key = word.slice(0, Math.max(0, colon))
    const scan = TERMS.get(key)
    if (scan === undefined) {
      const known = [...TERMS.keys()].join(', ')
      const hint = didYouMean(key, TERMS.keys())
      return `${JSON.stringify(word)} is not a selector: the selectors are ${known}; ${EXAMPLE}${hint}`
    }
    if (terms.has(key)) return `${key} appears twice; a drain selects what all its terms select`
    const value = normalize(key, word.slice(colon + 1))
    const term = value === '' || value.length > VALUE_CHARACTERS_MAX ? undefined : scan(value)
    if (term === undefined)
      return `${JSON.stringify(word)}: the value is not valid for ${key}${key === 'geo' ? geoCodeHint(value) : ''}`
    terms.set(key, { ...term, text: printTerm(key, ':', value) })
  }
  return new DrainSelector([...terms.values()].sort((a, b) => (a.text < b.text ? -1 : 1)))
}

function normalize(key: string, value: string): string {
  if (!LOWERED.has(key)) return value
  const lower = value.toLowerCase()
  return lower.length > 1 && lower.endsWith('.') ? lower.slice(0, -1) : lower
}

/** The name itself and all names below it. */
function scanZone(value: string): Omit<Term, 'text'> | undefined {
  const names = scanNames(value)
  if (names === undefined) return undefined
  const { glob, needle } = names
  const acceptsEndpoint = ({ content }: SelectedRecord, index: number): boolean => {
    const owner = printHost(content.endpoints[index]!.owner)
    for (let at = 0; at !== -1; at = nextLabel(owner, at)) {
      if (glob.matches(owner.slice(at))) return true
    }
    return false
  }
  return { needle, acceptsEndpoint }
}

/** Start of the label behind the one at `at`; -1 = it is the last one. */
function nextLabel(name: string, at: number): number {
  const dot = name.indexOf('.', at)
  return dot === -1 ? -1 : dot + 1
}

/** The owner, or the root host of the record. */
function scanHostTerm(value: string): Omit<Term, 'text'> | undefined {
  const names = scanNames(value)
  if (names === undefined) return undefined
  const { glob, needle } = names
  const acceptsEndpoint = ({ content }: SelectedRecord, index: number): boolean => {
    const root = printHost(content.rootHost)
    return (
      glob.matches(content.isWildcardHost ? `*.${root}` : root) ||
      glob.matches(printHost(content.endpoints[index]!.owner))
    )
  }
  return { needle, acceptsEndpoint }
}

function scanIdentifier(value: string): Omit<Term, 'text'> {
  const glob = new StarPattern(value)
  return {
    needle: Buffer.from(glob.longestPart, 'utf8').toString('latin1'),
    acceptsEndpoint: ({ content }, index) => {
      const { setIdentifier } = content.endpoints[index]!
      return setIdentifier !== '' && glob.matches(setIdentifier)
    },
  }
}

function scanAddressTerm(value: string): Omit<Term, 'text'> | undefined {
  const address = scanAddress(value)
  const network = address === undefined ? scanCidr(value) : wholeAddress(address)
  if (network !== undefined) {
    const { family, bytes, bits } = network
    const needle = printLatin1(bytes.subarray(0, bits >> 3))
    const wanted = family === 1 ? RRType.A : RRType.AAAA
    return {
      needle,
      acceptsTarget: (type, rdata) => type === wanted && isInNetwork(rdata, network),
    }
  }
  if (value.includes('/')) return undefined
  const glob = new StarPattern(value)
  if (!value.includes('*') && scanHost(value) === undefined) return undefined
  return { needle: '', acceptsTarget: (type, rdata) => glob.matches(printPlace(type, rdata)) }
}

function wholeAddress(address: Address): Cidr {
  return { ...address, bits: address.bytes.length * 8 }
}

/** Prints an address or a CNAME target; '' = neither. */
function printPlace(type: number, rdata: Uint8Array): string {
  if (type === RRType.A) return printAddress(rdata, 1)
  if (type === RRType.AAAA) return printAddress(rdata, 2)
  return type === RRType.CNAME || type === ALIAS_TYPE ? printHost(rdata) : ''
}

/**
 * An endpoint with the code. A default endpoint may only repeat such an endpoint, as DNSPolicy
 * writes it; then it is selected too, because it leads to the same place.
 */
function scanGeo(value: string): Omit<Term, 'text'> | undefined {
  const isPattern = value.includes('*') || value.toLowerCase() === GEO_DEFAULT
  if (!isPattern && scanGeoCode(value) === undefined) return undefined
  const glob = new StarPattern(value.toLowerCase())
  const hasCode = ({ codes, isDefault }: Endpoint): boolean => {
    if (codes.length === 0) return isDefault && glob.matches(GEO_DEFAULT)
    return codes.some(({ text }) => glob.matches(text.toLowerCase()))
  }
  return {
    needle: '',
    acceptsEndpoint: ({ content: { endpoints } }, index) => {
      const endpoint = endpoints[index]!
      if (hasCode(endpoint)) return true
      if (!endpoint.isDefault || endpoint.codes.length > 0) return false
      return endpoints.some((other) => leadsToTheSame(other, endpoint) && hasCode(other))
    },
  }
}

/** An endpoint that several sites have is selected only if all of them are. */
function scanSite(value: string): Omit<Term, 'text'> {
  const glob = new StarPattern(value)
  return {
    needle: '',
    acceptsEndpoint: ({ sites }, index) => {
      const all = sites[index] ?? []
      return all.length > 0 && all.every((site) => glob.matches(site))
    },
  }
}

/** A pattern selects records of this site only: a drain of a namespace is not one of other clusters. */
function scanRecord(value: string): Omit<Term, 'text'> | undefined {
  if (!value.includes('/')) return undefined
  const glob = new StarPattern(value)
  const acceptsRecord = (record: StoredRecord): boolean => {
    const { key, original } = record
    if (isForeign(record)) return key === value
    return glob.matches(key) || (original !== undefined && glob.matches(original))
  }
  return { needle: '', acceptsRecord }
}

/** Returns undefined for an invalid name. */
function scanNames(
  value: string,
): { readonly glob: StarPattern; readonly needle: string } | undefined {
  const glob = new StarPattern(value)
  if (value.includes('*')) {
    if (/[\s\\/:]/.test(value)) return undefined
    const words = glob.longestPart.split('.')
    return { glob, needle: words.reduce((a, b) => (b.length > a.length ? b : a)) }
  }
  const name = scanHost(value)
  return name === undefined ? undefined : { glob, needle: lowerNameKey(name) }
}
