import { RRType } from '../../dns/iana/types.ts'
import { nameKey, printKey, printName } from '../../dns/name/name.ts'
import type { Address } from '../../dns/text/address.ts'
import { CHAIN_MAX } from '../../health/down-targets.ts'
import {
  ALIAS_TYPE,
  DERIVED_ENDPOINTS_MAX,
  type Endpoint,
  SET_IDENTIFIER_CHARACTERS_MAX,
} from '../../records/dns-record.ts'
import { packEndpoint } from '../../records/pack.ts'
import { printRecordType, printTarget } from '../../records/print-endpoint.ts'
import { lowerNameKey } from '../../records/validate/names.ts'
import type { InsideName } from './inside-names.ts'
import type { FoundAddresses } from './outside-addresses.ts'

/** Maximum number of addresses of each family that one ALIAS endpoint stands for. */
export const ADDRESSES_MAX = 64
/** Maximum number of names that one ALIAS endpoint leads to. */
const NAMES_MAX = 256
/** Faults of one ALIAS endpoint that are reported. */
const FAULTS_MAX = 4
/** Maximum number of addresses in our zones that the ALIAS endpoints of one record read. */
const READS_MAX = 65_536

/** Where ALIAS endpoints may lead. `note`: gets what the result depends on. */
export interface AliasWorld {
  /** As `InsideNames.find`. */
  inside(name: Uint8Array, note: (owner: string) => void): InsideName | undefined
  /** Returns the addresses of a name outside of our zones; undefined = names outside are not resolved. */
  outside(name: Uint8Array): FoundAddresses | undefined
  /** Returns why an address from outside is refused; '' = it is not. */
  refusal(address: Address): string
}

/** What the ALIAS endpoints of one record may still use: an author could let each of many lead to many. */
export class AliasBudget {
  /** Endpoints that they may stand for. */
  endpointsLeft: number
  readsLeft: number = READS_MAX

  /** `endpoints`: of the record. */
  constructor(endpoints: number) {
    this.endpointsLeft = DERIVED_ENDPOINTS_MAX - endpoints
  }
}

/** What one ALIAS endpoint stands for, and what decided it. */
export interface ExpandedAlias {
  /** A and AAAA endpoints of the owner. */
  readonly endpoints: readonly Endpoint[]
  readonly faults: readonly string[]
  /** `lowerNameKey` of the owners in our zones. */
  readonly insideOwners: ReadonlySet<string>
  /** By `nameKey`. */
  readonly outsideNames: ReadonlyMap<string, Uint8Array>
  /** Keys of the records with the endpoints in our zones. */
  readonly lenders: ReadonlySet<string>
}

/** Replaces an ALIAS endpoint by the addresses of its target. `budget`: of its record. */
export function expandAlias(
  alias: Endpoint,
  world: AliasWorld,
  budget: AliasBudget,
): ExpandedAlias {
  const expansion = new Expansion(alias, world, budget)
  return expansion.run()
}

class Expansion {
  readonly #alias: Endpoint
  readonly #world: AliasWorld
  readonly #budget: AliasBudget
  readonly #faults = new Set<string>()
  readonly #insideOwners = new Set<string>()
  readonly #outsideNames = new Map<string, Uint8Array>()
  readonly #lenders = new Set<string>()
  #namesLeft = NAMES_MAX
  /** Some name outside has not been asked for yet. */
  #isWaiting = false

  constructor(alias: Endpoint, world: AliasWorld, budget: AliasBudget) {
    this.#alias = alias
    this.#world = world
    this.#budget = budget
  }

  run(): ExpandedAlias {
    const alias = this.#alias
    const aliasOf = alias.rdata[0]!
    const behind = this.#follow(aliasOf, [lowerNameKey(alias.owner)])
    const endpoints = this.#spend(lay(alias, behind))
      .map((one) => ({ ...this.#cut(one), owner: alias.owner, aliasOf }))
      .map((one) => ({ one, order: packEndpoint(one) }))
      .sort((a, b) => (a.order < b.order ? -1 : 1))
      .map(({ one }) => one)
    return {
      endpoints,
      faults: [...this.#faults].slice(0, FAULTS_MAX),
      insideOwners: this.#insideOwners,
      outsideNames: this.#outsideNames,
      lenders: this.#lenders,
    }
  }

  /** Returns the A and AAAA endpoints that a name leads to. `path`: owners on the way, as `lowerNameKey`. */
  #follow(name: Uint8Array, path: readonly string[]): readonly Endpoint[] {
    if (path.length > CHAIN_MAX || this.#namesLeft-- <= 0) {
      return this.#fail(`${printName(this.#alias.rdata[0]!)} leads to too many names`)
    }
    if (this.#budget.readsLeft <= 0) return this.#fail(`its record ${TOO_MANY}`)
    const inside = this.#world.inside(name, (owner) => void this.#insideOwners.add(owner))
    if (inside === undefined) return this.#followOutside(name, path)
    for (const { endpoint } of inside.endpoints) this.#budget.readsLeft -= endpoint.rdata.length
    if (path.includes(inside.owner)) {
      return this.#fail(`it is a loop: ${printName(name)} leads back to ${printKey(inside.owner)}`)
    }
    const further = [...path, inside.owner]
    const found = inside.endpoints.filter(({ endpoint }) => endpoint.type !== RRType.CNAME)
    const isCname = !found.some(({ endpoint }) => isUsed(endpoint))
    const endpoints = isCname ? inside.endpoints : found
    const behind = endpoints.flatMap(({ key, endpoint }): readonly Endpoint[] => {
      if (!isUsed(endpoint)) return []
      this.#lenders.add(key)
      if (isAddressType(endpoint.type)) return [endpoint]
      return lay(endpoint, this.#follow(endpoint.rdata[0]!, further))
    })
    if (behind.length > 0 || this.#faults.size > 0 || this.#isWaiting) return behind
    return this.#fail(`${printName(name)} has no addresses`)
  }

  #followOutside(name: Uint8Array, path: readonly string[]): readonly Endpoint[] {
    const found = this.#world.outside(name)
    if (found === undefined) {
      const text = `${printName(name)} is outside of the zones of this source, and the block has no \`alias-resolver\``
      return this.#fail(text)
    }
    this.#outsideNames.set(nameKey(name), name)
    if (found.fault !== '') this.#fail(found.fault)
    else if (found.addresses.length === 0) this.#isWaiting = true
    // Our own answers come back through the CNAMEs of others.
    const back = found.chain.find((one) => this.#world.inside(one, () => {}) !== undefined)
    if (back !== undefined) {
      return this.#follow(back, path).map((one) => withTtl(one, found.ttlSeconds || one.ttlSeconds))
    }
    const allowed = found.addresses.filter((address) => {
      const refusal = this.#world.refusal(address)
      if (refusal !== '') this.#fail(`${printName(name)} has ${refusal}`)
      return refusal === ''
    })
    return ([1, 2] as const).flatMap((family): readonly Endpoint[] => {
      const rdata = allowed.filter((one) => one.family === family).map(({ bytes }) => bytes)
      if (rdata.length === 0) return []
      const type = family === 1 ? RRType.A : RRType.AAAA
      return [{ ...UNSTEERED, owner: name, type, ttlSeconds: found.ttlSeconds, rdata }]
    })
  }

  #spend(endpoints: readonly Endpoint[]): readonly Endpoint[] {
    if (endpoints.length > this.#budget.endpointsLeft) return this.#fail(`its record ${TOO_MANY}`)
    this.#budget.endpointsLeft -= endpoints.length
    return endpoints
  }

  #cut(endpoint: Endpoint): Endpoint {
    const { type, rdata } = endpoint
    if (rdata.length <= ADDRESSES_MAX) return endpoint
    const name = printName(this.#alias.rdata[0]!)
    this.#fail(
      `${name} has ${rdata.length} ${printRecordType(type)} addresses; only the first ${ADDRESSES_MAX} are served`,
    )
    return { ...endpoint, rdata: rdata.slice(0, ADDRESSES_MAX) }
  }

  #fail(fault: string): readonly Endpoint[] {
    this.#faults.add(fault)
    return []
  }
}

const TOO_MANY = 'leads to too many addresses'

const UNSTEERED = {
  setIdentifier: '',
  weight: undefined,
  codes: [],
  isDefault: false,
} as const

/**
 * Returns the endpoints that an endpoint with a name stands for: `inner`, to which the name leads, as chosen by
 * `outer`.
 *
 * - If `outer` chooses nothing, `inner` does. If `inner` does not, `outer` does.
 * - If `outer` has a place (codes, location) and no weight, and `inner` has only weights, both hold.
 * - Otherwise `outer` decides, and has all addresses of `inner`.
 */
function lay(outer: Endpoint, inner: readonly Endpoint[]): readonly Endpoint[] {
  const { setIdentifier, weight, codes, isDefault, point } = outer
  const bound = inner.map((one) => {
    return { ...withTtl(one, outer.ttlSeconds), probeAt: outer.probeAt ?? one.probeAt }
  })
  const hasPlace = codes.length > 0 || isDefault || point !== undefined
  if (!hasPlace && weight === undefined && setIdentifier === '') return bound
  const hasWeights = inner.some((one) => one.weight !== undefined)
  const hasInnerPlace = inner.some(isPlaced)
  if (hasPlace && weight === undefined && hasWeights && !hasInnerPlace) {
    return bound.map((one) => {
      const id = joinIdentifiers(setIdentifier, one)
      return { ...one, setIdentifier: id, codes, isDefault, point }
    })
  }
  return ([RRType.A, RRType.AAAA] as const).flatMap((type): readonly Endpoint[] => {
    const own = bound.filter((one) => one.type === type)
    if (own.length === 0) return []
    const ttlSeconds = own.reduce((least, one) => Math.min(least, one.ttlSeconds), outer.ttlSeconds)
    const rdata = uniteRdata(own)
    return [{ ...outer, type, ttlSeconds, rdata, probeAt: own[0]!.probeAt }]
  })
}

/** Endpoints that `lay` makes of several need identifiers that differ. */
function joinIdentifiers(outer: string, { setIdentifier, type, rdata }: Endpoint): string {
  const inner = setIdentifier === '' ? printTarget(type, rdata[0]!) : setIdentifier
  const joined = outer === '' ? inner : `${outer}/${inner}`
  return joined.slice(0, SET_IDENTIFIER_CHARACTERS_MAX)
}

function uniteRdata(endpoints: readonly Endpoint[]): Uint8Array[] {
  const byText = new Map<string, Uint8Array>()
  for (const { rdata } of endpoints) {
    for (const one of rdata) byText.set(Buffer.from(one).toString('latin1'), one)
  }
  return [...byText.values()].sort(Buffer.compare)
}

function isPlaced({ codes, isDefault, point }: Endpoint): boolean {
  return codes.length > 0 || isDefault || point !== undefined
}

function isUsed({ type }: Endpoint): boolean {
  return isAddressType(type) || type === RRType.CNAME || type === ALIAS_TYPE
}

function isAddressType(type: number): boolean {
  return type === RRType.A || type === RRType.AAAA
}

function withTtl(endpoint: Endpoint, ttlSeconds: number): Endpoint {
  return endpoint.ttlSeconds <= ttlSeconds ? endpoint : { ...endpoint, ttlSeconds }
}
