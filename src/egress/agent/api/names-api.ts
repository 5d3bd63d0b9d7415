import type { Clock } from '../../../base/clock.ts'
import { NameBuffer } from '../../../dns/name/hashed-name.ts'
import { printKey } from '../../../dns/name/name.ts'
import { scanAddress, scanCidr } from '../../../dns/text/address.ts'
import { AddressSet } from '../../../dns/text/address-set.ts'
import type { Learned } from '../../learned/learned-table.ts'
import { type Dialect, scanSelector } from '../../selectors/scan-selector.ts'
import type { Selector } from '../../selectors/selector.ts'
import { SelectorIndex } from '../../selectors/selector-index.ts'
import type { Client } from '../client.ts'

/** An answer that a client got, or an address that it has connections to. The fields are those of Cilium's API. */
export interface ListedName {
  readonly fqdn: string
  readonly ips: readonly string[]
  /** RFC 3339; for connections, when one was last known to be open. */
  readonly 'lookup-time': string
  /** Seconds; 0 for connections. */
  readonly ttl: number
  /** RFC 3339. */
  readonly 'expiration-time': string
  /** The client: `namespace/name/uid`. */
  readonly 'endpoint-id': string
  readonly source: Source
}

/** `connection`: the TTL has ended, but connections may be open. */
export type Source = 'lookup' | 'connection'

/** The selectors of all clients. The fields are those of Cilium's API. */
export interface PolicyNames {
  readonly DNSPollNames: readonly string[]
  readonly FQDNPolicySelectors: readonly {
    readonly selectorString: string
    readonly regexString: string
  }[]
}

/** What one client learned. */
interface LearnedNames {
  readonly client: Client
  learned(): Iterable<Learned>
}

/** What the API needs of the agent. */
interface NamesOfClients {
  states(): Iterable<LearnedNames>
  clients(): readonly Client[]
  /** Forgets names, by their keys, and what they allow. */
  forget(isSelected: (name: string) => boolean): unknown
}

interface NamesApiParts {
  readonly names: NamesOfClients
  /** How patterns are read. */
  readonly dialect: Dialect
  readonly clock: Clock
}

/** A reply: rows are the elements of a JSON array, undefined = no body. */
export interface NamesReply {
  readonly status: 200 | 400 | 404 | 405
  readonly rows?: Iterable<ListedName>
  readonly json?: unknown
  /** Why a request is invalid. */
  readonly fault?: string
  /** With status 405. */
  readonly allow?: string
}

const CACHE = '/fqdn/cache'
const NAMES = '/fqdn/names'

/** The API of Cilium's agent for names, over what the clients of this node learned. */
export class NamesApi {
  readonly #parts: NamesApiParts

  constructor(parts: NamesApiParts) {
    this.#parts = parts
  }

  /** `target`: path and query of a request. */
  answer(method: string, target: string): NamesReply {
    const { pathname, searchParams } = new URL(target, 'http://localhost')
    if (pathname === NAMES) {
      return method === 'GET' ? { status: 200, json: this.#policyNames() } : refuse('GET')
    }
    const client = clientIn(pathname)
    if (client === undefined) return { status: 404 }
    if (method === 'GET') return this.#list(client, searchParams)
    if (client !== '') return refuse('GET')
    return method === 'DELETE' ? this.#forget(searchParams) : refuse('GET, DELETE')
  }

  #list(client: string, params: URLSearchParams): NamesReply {
    const isName = this.#nameFilter(params)
    if (typeof isName === 'string') return invalid(isName)
    const isAddress = addressFilter(params.get('cidr') ?? '')
    if (typeof isAddress === 'string') return invalid(isAddress)
    const source = params.get('source') ?? ''
    if (!['', 'lookup', 'connection'].includes(source)) {
      return invalid('source must be lookup or connection')
    }
    const rows = filtered(this.#rows(client, isName), (row) => {
      return (source === '' || row.source === source) && row.ips.some(isAddress)
    })
    const first = rows.next()
    return first.done === true
      ? { status: 404 }
      : { status: 200, rows: withFirst(first.value, rows) }
  }

  #forget(params: URLSearchParams): NamesReply {
    const isName = this.#nameFilter(params)
    if (typeof isName === 'string') return invalid(isName)
    this.#parts.names.forget(isName)
    return { status: 200 }
  }

  /** `isName` selects keys of names. */
  *#rows(wanted: string, isName: (name: string) => boolean): Generator<ListedName> {
    const { names, clock } = this.#parts
    const offsetMs = clock.now() - clock.monotonic()
    const print = (ms: number): string => new Date(ms + offsetMs).toISOString()
    for (const grants of names.states()) {
      const { id } = grants.client
      if (wanted !== '' && id !== wanted && !id.startsWith(`${wanted}/`)) continue
      for (const one of grants.learned()) {
        const isZombie = 'address' in one
        const lookupMs = isZombie ? one.aliveMs : one.lookupMs
        const fqdns = [...(isZombie ? one.names : [one.name])].filter(isName).map(printKey)
        for (const fqdn of fqdns.sort()) {
          yield {
            fqdn,
            ips: isZombie ? [one.address] : one.addresses,
            'lookup-time': print(Number.isFinite(lookupMs) ? lookupMs : one.endMs),
            ttl: isZombie ? 0 : one.ttlSeconds,
            'expiration-time': print(isZombie ? one.keptMs : one.endMs),
            'endpoint-id': id,
            source: isZombie ? 'connection' : 'lookup',
          }
        }
      }
    }
  }

  /** Returns what is wrong with the pattern as a string. */
  #nameFilter(params: URLSearchParams): ((name: string) => boolean) | string {
    const pattern = params.get('matchpattern') ?? ''
    if (pattern === '') return () => true
    const selector = scanSelector(pattern, this.#parts.dialect)
    if (typeof selector === 'string') return selector
    const index = new SelectorIndex()
    index.set({ consumer: '', namespace: '', object: '' }, [selector])
    const buffer = new NameBuffer()
    return (name) => {
      buffer.setKey(name)
      return index.selects(buffer)
    }
  }

  #policyNames(): PolicyNames {
    const texts = new Map<string, string>()
    for (const { rules } of this.#parts.names.clients()) {
      for (const tier of rules.lists.flat()) {
        for (const selector of tier.rules.flatMap(({ names }) => names)) {
          texts.set(selector.text, printRegex(selector))
        }
      }
    }
    const sorted = [...texts].sort(([a], [b]) => (a < b ? -1 : 1))
    return {
      DNSPollNames: [],
      FQDNPolicySelectors: sorted.map(([selectorString, regexString]) => {
        return { selectorString, regexString }
      }),
    }
  }
}

/** The client of a path under `/fqdn/cache`; '' = all. Undefined = another path. */
function clientIn(path: string): string | undefined {
  if (path === CACHE || path === `${CACHE}/`) return ''
  if (!path.startsWith(`${CACHE}/`)) return undefined
  try {
    return decodeURIComponent(path.slice(CACHE.length + 1)) || undefined
  } catch {
    return undefined
  }
}

/** `text`: a network or an address; '' = all. Returns what is wrong as a string. */
function addressFilter(text: string): ((address: string) => boolean) | string {
  if (text === '') return () => true
  const address = scanAddress(text)
  const bits = address === undefined ? 0 : address.bytes.length * 8
  const network = address === undefined ? scanCidr(text) : { ...address, bits }
  if (network === undefined) return 'cidr must be a network, such as 192.0.2.0/24, or an address'
  const set = new AddressSet([network])
  return (ip) => {
    const { bytes, family } = scanAddress(ip)!
    return set.has(bytes, 0, family)
  }
}

function* filtered<T>(all: Iterable<T>, isSelected: (one: T) => boolean): Generator<T> {
  for (const one of all) if (isSelected(one)) yield one
}

function* withFirst<T>(first: T, others: Iterable<T>): Generator<T> {
  yield first
  yield* others
}

function invalid(fault: string): NamesReply {
  return { status: 400, fault }
}

function refuse(allow: string): NamesReply {
  return { status: 405, allow }
}

const CHARACTER = '[-a-zA-Z0-9_]'
const REGEX_PARTS: readonly (readonly [string, string])[] = [
  ['one *.', '[^.]+[.]'],
  ['many *.', '([^.]+[.])+'],
  ['pattern **.', `(${CHARACTER}+[.])+`],
  ['pattern ', ''],
]

/** The selector as the regular expression that Cilium would have, for display. */
function printRegex({ kind, key }: Selector): string {
  if (kind === 'all') return `(^(${CHARACTER}+[.])+$)|(^[.]$)`
  const [head, start] = REGEX_PARTS.find(([head]) => key.startsWith(head)) ?? ['', '']
  const rest = key.slice(head.length).replaceAll('.', '[.]').replaceAll('*', `${CHARACTER}*`)
  return `^${start}${rest}$`
}
