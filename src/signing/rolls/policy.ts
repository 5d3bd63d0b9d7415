import { InputError, InputErrors, type Position } from '../../base/errors.ts'
import { didYouMean } from '../../base/nearest.ts'
import { Algorithm, canSign, SIGNING_NAMES, scanAlgorithm } from '../../dns/dnssec/algorithms.ts'
import type { DigestType } from '../../dns/dnssec/ds.ts'
import { scanTtl } from '../../dns/text/ttl.ts'
import { DEFAULT_SIGNING, type DenialKind, type SigningPolicy } from '../zone-keys.ts'

/** What a key signs: a CSK all, a KSK the key RRsets, a ZSK all others (RFC 9499 section 11). */
export type KeyRole = (typeof ROLES)[number]
const ROLES = ['csk', 'ksk', 'zsk'] as const

/** Which keys a zone has, how it is signed, and how long the steps of a roll wait. */
export interface RollPolicy {
  readonly signing: SigningPolicy
  /** True = a KSK and a ZSK; false = a CSK. */
  readonly split: boolean
  readonly algorithm: number
  /** Of RSA keys. */
  readonly rsaBits: number
  /** Age at which a key is replaced; Infinity = never. */
  readonly lifetimeSeconds: Readonly<Record<KeyRole, number>>
  readonly dnskeyTtlSeconds: number
  /** Until all servers of the zone, and of the parent, have a change. */
  readonly zonePropagationSeconds: number
  readonly parentPropagationSeconds: number
  /** The least TTL of the DS that is assumed; the parent may have a greater one. */
  readonly parentDsTtlSeconds: number
  /** Added to the waits after a DNSKEY was published, and after signatures or a DS were replaced. */
  readonly publishSafetySeconds: number
  readonly retireSafetySeconds: number
  readonly cdsDigests: readonly DigestType[]
}

/** One line of a policy block. */
export interface PolicyLine {
  readonly words: readonly string[]
  readonly position: Position
}

const HOUR = 3600
const DAY = 24 * HOUR
/** Lengths of RSA keys that validators accept and that are not weak (RFC 3110, RFC 6605 section 5). */
const RSA_BITS = [2048, 3072, 4096] as const

export const DEFAULT_POLICY: RollPolicy = {
  signing: DEFAULT_SIGNING,
  split: false,
  algorithm: Algorithm.EcdsaP256,
  rsaBits: 2048,
  lifetimeSeconds: { csk: Number.POSITIVE_INFINITY, ksk: Number.POSITIVE_INFINITY, zsk: 90 * DAY },
  dnskeyTtlSeconds: HOUR,
  zonePropagationSeconds: 300,
  parentPropagationSeconds: HOUR,
  parentDsTtlSeconds: DAY,
  publishSafetySeconds: HOUR,
  retireSafetySeconds: HOUR,
  cdsDigests: [2],
}

/** Properties of the directive that override those of its policy. */
export interface PolicyOverrides {
  readonly split?: boolean
  readonly algorithm?: number
  readonly denial?: DenialKind
  readonly optOut?: boolean
}

export function withOverrides(policy: RollPolicy, overrides: PolicyOverrides): RollPolicy {
  const { denial, optOut, split = policy.split, algorithm = policy.algorithm } = overrides
  const { signing } = policy
  const proof = denial === undefined ? {} : { denial, optOut: optOut ?? false }
  return { ...policy, split, algorithm, signing: { ...signing, ...proof } }
}

/** A policy while its lines are read. */
interface Draft {
  policy: { -readonly [Name in keyof RollPolicy]: RollPolicy[Name] }
  signing: { -readonly [Name in keyof SigningPolicy]: SigningPolicy[Name] }
  lifetimes: Record<KeyRole, number>
}

/** Applies the arguments of a property. Returns what is wrong with them; '' = nothing. */
type Setter = (draft: Draft, args: readonly string[]) => string

const SETTERS: ReadonlyMap<string, Setter> = new Map<string, Setter>([
  ['split', (draft, args) => setSplit(draft, args)],
  ['algorithm', (draft, args) => setAlgorithm(draft, args)],
  ['csk-lifetime', lifetime('csk')],
  ['ksk-lifetime', lifetime('ksk')],
  ['zsk-lifetime', lifetime('zsk')],
  ['dnskey-ttl', duration((draft, seconds) => (draft.policy.dnskeyTtlSeconds = seconds))],
  ['zone-propagation-delay', duration((d, seconds) => (d.policy.zonePropagationSeconds = seconds))],
  [
    'parent-propagation-delay',
    duration((d, seconds) => (d.policy.parentPropagationSeconds = seconds)),
  ],
  ['parent-ds-ttl', duration((draft, seconds) => (draft.policy.parentDsTtlSeconds = seconds))],
  ['publish-safety', duration((draft, seconds) => (draft.policy.publishSafetySeconds = seconds))],
  ['retire-safety', duration((draft, seconds) => (draft.policy.retireSafetySeconds = seconds))],
  ['signatures-validity', duration((d, seconds) => (d.signing.validitySeconds = seconds))],
  ['signatures-jitter', duration((draft, seconds) => (draft.signing.jitterSeconds = seconds))],
  ['signatures-refresh', duration((draft, seconds) => (draft.signing.refreshSeconds = seconds))],
  ['inception-offset', duration((d, seconds) => (d.signing.inceptionOffsetSeconds = seconds))],
  ['cds-digest-types', (draft, args) => setDigests(draft, args)],
  ['denial', (draft, args) => setDenial(draft, args)],
])

/** Reads the lines of a policy block. @throws InputError, with the position of the line. */
export function scanPolicy(name: string, lines: readonly PolicyLine[]): RollPolicy {
  const draft: Draft = {
    policy: { ...DEFAULT_POLICY },
    signing: { ...DEFAULT_SIGNING, name },
    lifetimes: { ...DEFAULT_POLICY.lifetimeSeconds },
  }
  const faults: InputError[] = []
  const seen = new Map<string, Position>()
  for (const { words, position } of lines) {
    const [property = '', ...args] = words
    const fault = seen.has(property) ? 'it is set twice' : apply(draft, property, args)
    seen.set(property, position)
    if (fault !== '') faults.push(faultOf(name, property, fault, position))
  }
  const policy = { ...draft.policy, signing: draft.signing, lifetimeSeconds: draft.lifetimes }
  if (faults.length === 0) {
    for (const { property, fault } of contradictions(policy)) {
      const position = seen.get(property) ?? lines.at(-1)?.position
      faults.push(faultOf(name, property, fault, position))
    }
  }
  const [first, ...others] = faults
  if (first !== undefined) throw others.length === 0 ? first : new InputErrors(first, others)
  return policy
}

function faultOf(
  name: string,
  property: string,
  fault: string,
  position: Position | undefined,
): InputError {
  return new InputError(position, `policy ${name}: ${property}: ${fault}`)
}

function apply(draft: Draft, property: string, args: readonly string[]): string {
  const setter = SETTERS.get(property)
  if (setter === undefined) return `unknown property${didYouMean(property, SETTERS.keys())}`
  return setter(draft, args)
}

/** Settings of a policy with which a roll never ends, or signatures expire. */
function contradictions(policy: RollPolicy): { property: string; fault: string }[] {
  const { signing, lifetimeSeconds } = policy
  const found: { property: string; fault: string }[] = []
  for (const role of ROLES) {
    const least = rollSeconds(policy, role)
    if (lifetimeSeconds[role] > least) continue
    const fault = `a roll takes longer than the key lives; use more than ${printSeconds(least)}, or smaller delays and TTLs`
    found.push({ property: `${role}-lifetime`, fault })
  }
  const { validitySeconds, refreshSeconds, jitterSeconds } = signing
  if (refreshSeconds + jitterSeconds >= validitySeconds) {
    const fault = `signatures would always be due: it and signatures-jitter must be less than signatures-validity, ${printSeconds(validitySeconds)}`
    found.push({ property: 'signatures-refresh', fault })
  }
  if (refreshSeconds <= policy.zonePropagationSeconds) {
    const fault = `signatures would expire before new ones are on all servers; use more than zone-propagation-delay, ${printSeconds(policy.zonePropagationSeconds)}`
    found.push({ property: 'signatures-refresh', fault })
  }
  return found
}

/** Least duration of a roll, without the time that the parent needs. */
function rollSeconds(policy: RollPolicy, role: KeyRole): number {
  const { dnskeyTtlSeconds, zonePropagationSeconds, parentPropagationSeconds } = policy
  const { parentDsTtlSeconds, publishSafetySeconds, retireSafetySeconds } = policy
  const keys = zonePropagationSeconds + dnskeyTtlSeconds + publishSafetySeconds
  if (role === 'zsk') return 2 * keys + zonePropagationSeconds + retireSafetySeconds
  return 2 * (keys + parentPropagationSeconds + parentDsTtlSeconds + retireSafetySeconds)
}

function setSplit(draft: Draft, args: readonly string[]): string {
  draft.policy.split = true
  return args.length === 0 ? '' : 'it has no argument'
}

function setAlgorithm(draft: Draft, [name = '', bits, ...rest]: readonly string[]): string {
  const algorithm = scanAlgorithm(name)
  if (algorithm === undefined || !canSign(algorithm)) {
    return `'${name}' is not an algorithm that signs; use ${SIGNING_NAMES.join(', ')}${didYouMean(name, SIGNING_NAMES)}`
  }
  draft.policy.algorithm = algorithm
  if (bits === undefined) return ''
  const isRsa = algorithm === Algorithm.RsaSha256 || algorithm === Algorithm.RsaSha512
  if (!isRsa || rest.length > 0) return 'only RSA keys have a length; write the name alone'
  const found = RSA_BITS.find((one) => String(one) === bits)
  if (found === undefined) return `'${bits}' is not ${RSA_BITS.join(', ')}`
  draft.policy.rsaBits = found
  return ''
}

function setDigests(draft: Draft, args: readonly string[]): string {
  const types = new Map<string, DigestType>([
    ['SHA-256', 2],
    ['SHA-384', 4],
  ])
  const digests: DigestType[] = []
  for (const arg of args) {
    const digest = types.get(arg.toUpperCase())
    if (digest === undefined) return `'${arg}' is not SHA-256 or SHA-384`
    if (!digests.includes(digest)) digests.push(digest)
  }
  draft.policy.cdsDigests = digests
  return digests.length > 0 ? '' : 'use SHA-256 or SHA-384'
}

function setDenial(draft: Draft, [denial, option, ...rest]: readonly string[]): string {
  if (denial !== 'nsec' && denial !== 'nsec3' && denial !== 'compact') {
    return 'use nsec, nsec3, nsec3 opt-out or compact'
  }
  const isOption = denial === 'nsec3' && option === 'opt-out'
  draft.signing.denial = denial
  draft.signing.optOut = isOption
  return rest.length > 0 || (option !== undefined && !isOption) ? 'only nsec3 has opt-out' : ''
}

function lifetime(role: KeyRole): Setter {
  const set = duration((draft, seconds) => (draft.lifetimes[role] = seconds))
  return (draft, args) => {
    if (args.length !== 1 || args[0] !== 'unlimited') return set(draft, args)
    draft.lifetimes[role] = Number.POSITIVE_INFINITY
    return ''
  }
}

function duration(set: (draft: Draft, seconds: number) => void): Setter {
  return (draft, args) => {
    const seconds = args.length === 1 ? scanTtl(args[0]!) : undefined
    if (seconds === undefined) return 'use one duration, such as 90d, 12h or 300'
    set(draft, seconds)
    return ''
  }
}

/** The inverse of `scanTtl`: `1d12h`. */
function printSeconds(seconds: number): string {
  let rest = seconds
  let text = ''
  for (const [unit, size] of [
    ['d', DAY],
    ['h', HOUR],
    ['m', 60],
    ['s', 1],
  ] as const) {
    const count = Math.floor(rest / size)
    if (count > 0) text += `${count}${unit}`
    rest -= count * size
  }
  return text || '0s'
}
