import { resolve } from 'node:path'
import { InputError, InputErrors, type Position } from '../../base/errors.ts'
import { didYouMean } from '../../base/nearest.ts'
import { lazyKey } from '../../base/shared-values.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import {
  canSign,
  discouragement,
  SIGNING_NAMES,
  scanAlgorithm,
} from '../../dns/dnssec/algorithms.ts'
import { type HostPort, printHostPort, splitHostPort } from '../../dns/host-port.ts'
import { scanName } from '../../dns/name/name.ts'
import { scanAddress } from '../../dns/text/address.ts'
import type { ApiPlace } from '../../kube/kubeconfig.ts'
import { scanEndpoint } from '../../plugin/arguments/endpoint.ts'
import { scanKubeconfig } from '../../plugin/arguments/kubeconfig.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import { scanZoneArgsOrBlock } from '../../plugin/arguments/zones.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import {
  DEFAULT_POLICY,
  type PolicyLine,
  type PolicyOverrides,
  type RollPolicy,
  scanPolicy,
  withOverrides,
} from '../../signing/rolls/policy.ts'
import type { BudgetRates } from './signature-budget.ts'

const CAPACITY_DEFAULT = 10_000
const CAPACITY_MAX = 10_000_000
const RATES_DEFAULT: BudgetRates = { total: 1000, perNetwork: 100 }
const RATE_MAX = 60_000

/** Until servers that follow this one have a change. */
const FOLLOW_SECONDS_MAX = 10

/** NAMESPACE/NAME. */
const SECRET = /^([a-z0-9-]{1,63})\/([a-z0-9.-]{1,253})$/
const POD_ACCOUNT: ApiPlace = { kubeconfig: '', context: '' }

/** Something that a line of the Corefile names. */
interface Placed {
  readonly position: Position
}

/** Where keys come from. `path`: absolute, or relative to the working directory. */
export type KeyOrigin = Placed &
  (
    | { readonly kind: 'files'; readonly files: readonly (Placed & { readonly path: string })[] }
    | { readonly kind: 'directory'; readonly path: string }
    | ({ readonly kind: 'secret'; readonly namespace: string; readonly name: string } & ApiPlace)
  )

/** The servers whose keys this one uses. */
export interface FollowedServers extends Placed {
  readonly servers: readonly HostPort[]
  /** Name of a key of `tsig`. */
  readonly keyName: Uint8Array
}

/** Other servers that may get the keys. */
export interface KeySharing extends Placed {
  /** Names of keys of `tsig`. */
  readonly keyNames: readonly Uint8Array[]
}

export interface DnssecOptions {
  readonly zones: readonly Uint8Array[]
  /** True: the directive names its zones; else they are those of the block. */
  readonly isNamed: boolean
  readonly keys: KeyOrigin
  /** Undefined = this server makes the keys. */
  readonly from: FollowedServers | undefined
  /** Undefined = no server gets the keys. */
  readonly share: KeySharing | undefined
  readonly policy: RollPolicy
  /** Nameservers of the parent zone. */
  readonly parents: readonly HostPort[]
  /** Entries of the cache of signatures in each thread. */
  readonly capacity: number
  readonly rates: BudgetRates
}

interface Draft {
  keys: KeyOrigin | undefined
  policy: RollPolicy | undefined
  readonly overrides: { -readonly [Name in keyof PolicyOverrides]: PolicyOverrides[Name] }
  readonly parents: HostPort[]
  /** Where the API of the Secret is. */
  api: (ApiPlace & Placed) | undefined
  from: FollowedServers | undefined
  share: KeySharing | undefined
  /** Properties that only keys that are made have. */
  readonly rollsAt: { readonly property: string; readonly position: Position }[]
  capacity: number
  rates: BudgetRates
}

/** The servers that directories of keys follow in this Corefile, as a text; '' = none. By path. */
const DIRECTORIES = lazyKey('directories of keys', () => new Map<string, string>())

/** Policies of this Corefile by name, as far as it is read. */
const POLICIES = lazyKey('policies of dnssec', () => new Map([['default', DEFAULT_POLICY]]))

/** Reads `dnssec [ZONES...] { … }`. @throws InputError. */
export function scanOptions(c: SetupContext): DnssecOptions {
  const d = c.dispenser
  const draft: Draft = {
    keys: undefined,
    api: undefined,
    policy: undefined,
    overrides: {},
    parents: [],
    from: undefined,
    share: undefined,
    rollsAt: [],
    capacity: CAPACITY_DEFAULT,
    rates: RATES_DEFAULT,
  }
  let zones: readonly Uint8Array[] = []
  let isNamed = false
  for (let i = 0; nextOnce(d, i); i++) {
    const args = d.remainingArgs()
    isNamed = args.length > 0
    zones = scanZoneArgsOrBlock(d, args, c.block)
    d.eachProperty(() => scanProperty(c, draft))
  }
  const { parents, capacity, rates, from, share } = draft
  const keys = originOf(d, draft)
  checkRolls(keys, draft)
  checkShared(c, keys, draft)
  const policy = withOverrides(draft.policy ?? DEFAULT_POLICY, draft.overrides)
  if (share !== undefined && policy.zonePropagationSeconds < FOLLOW_SECONDS_MAX) {
    const need = `share needs a zone-propagation-delay of ${FOLLOW_SECONDS_MAX}s or more`
    throw at(share.position, `${need}: the other servers ask for changes every few seconds`)
  }
  return { zones, isNamed, keys, from, share, policy, parents, capacity, rates }
}

function checkRolls({ kind }: KeyOrigin, { rollsAt, from }: Draft): void {
  const [first] = rollsAt
  if (kind === 'files' && first !== undefined) {
    const { property, position } = first
    throw at(position, `${property} needs keys DIR: keys of key file are neither made nor rolled`)
  }
  const made = rollsAt.find(({ property }) => property !== 'parent')
  if (from === undefined || made === undefined) return
  const { property, position } = made
  throw at(
    position,
    `${property} has no effect with from: the other server makes the keys; remove it`,
  )
}

function originOf(d: Dispenser, { keys, api }: Draft): KeyOrigin {
  if (keys === undefined) {
    throw d.error('dnssec has no keys; add keys DIR, or key file KEY for each key')
  }
  if (api === undefined) return keys
  if (keys.kind !== 'secret') {
    throw at(api.position, 'kubeconfig needs keys secret NAMESPACE/NAME; remove it')
  }
  const { kubeconfig, context } = api
  return { ...keys, kubeconfig, context }
}

function checkShared({ shared }: SetupContext, keys: KeyOrigin, { from, share }: Draft): void {
  const placed = from ?? share
  if (placed === undefined && keys.kind !== 'directory') return
  const name = from === undefined ? 'share' : 'from'
  if (keys.kind !== 'directory')
    throw at(placed!.position, `${name} needs keys DIR; remove ${name}, or use keys DIR`)
  if (from !== undefined && share !== undefined) {
    const fix = 'let all servers follow the one that makes the keys'
    throw at(share.position, `share and from exclude each other; ${fix}`)
  }
  const servers = from?.servers.map(printHostPort).join(' ') ?? ''
  const known = shared.acquire(DIRECTORIES)
  const other = known.get(keys.path) ?? servers
  known.set(keys.path, other)
  if (other === servers) return
  const fix = 'use the same from in all of them, or another directory'
  throw at(keys.position, `another block uses ${keys.path} with another line from; ${fix}`)
}

const PROPERTIES: ReadonlyMap<string, (c: SetupContext, draft: Draft) => void> = new Map([
  ['key', scanKey],
  ['keys', scanKeys],
  ['kubeconfig', scanApi],
  ['share', scanShare],
  ['from', scanFrom],
  ['policy', scanPolicyProperty],
  ['split', scanSplit],
  ['algorithm', scanAlgorithmProperty],
  ['denial', scanDenial],
  ['parent', scanParents],
  ['cache_capacity', scanCapacity],
  ['signatures_per_second', scanRates],
])

function scanProperty(c: SetupContext, draft: Draft): void {
  const d = c.dispenser
  const scan = PROPERTIES.get(d.value())
  if (scan === undefined) throw d.unknownProperty(d.value(), PROPERTIES.keys())
  scan(c, draft)
}

/** `key file KEY...`, once or more. */
function scanKey({ dispenser: d, block }: SetupContext, draft: Draft): void {
  const position = d.position()
  const [kind, ...names] = d.remainingArgs(1)
  if (kind === 'aws_secretsmanager') {
    const fix = 'export the key pair to files and use key file, or use keys DIR'
    throw d.error(`key aws_secretsmanager is not supported: Sextant has no AWS client; ${fix}`)
  }
  if (kind !== 'file') throw d.error(`unknown source of keys '${kind}'; use key file KEY...`)
  if (names.length === 0) throw d.argError()
  const { keys } = draft
  if (keys !== undefined && keys.kind !== 'files') throw severalPlaces(d)
  const files = names.map((name) => ({ path: resolve(block.root, name), position }))
  draft.keys = { kind: 'files', files: [...(keys?.files ?? []), ...files], position }
}

/** `keys DIR` or `keys secret NAMESPACE/NAME`. */
function scanKeys({ dispenser: d, block }: SetupContext, draft: Draft): void {
  const position = d.position()
  const [path, secret] = d.remainingArgs(1, 2)
  if (draft.keys !== undefined) throw severalPlaces(d)
  if (path === 'secret') {
    draft.keys = { kind: 'secret', ...scanSecret(d, secret ?? ''), ...POD_ACCOUNT, position }
    return
  }
  if (path!.startsWith('pkcs11:')) {
    throw d.error('keys of a PKCS #11 token are not supported; use keys DIR')
  }
  if (secret !== undefined) throw d.argError()
  draft.keys = { kind: 'directory', path: resolve(block.root, path!), position }
}

function scanSecret(d: Dispenser, text: string): { namespace: string; name: string } {
  const [, namespace, name] = SECRET.exec(text) ?? []
  if (namespace !== undefined && name !== undefined) return { namespace, name }
  throw d.error(`keys secret needs NAMESPACE/NAME of a Secret, not ${JSON.stringify(text)}`)
}

/** `kubeconfig FILE [CONTEXT]`. */
function scanApi({ dispenser: d, block }: SetupContext, draft: Draft): void {
  draft.api = { position: d.position(), ...scanKubeconfig(d, block.root) }
}

/** `share KEY...` */
function scanShare({ dispenser: d }: SetupContext, draft: Draft): void {
  const position = d.position()
  const keyNames = d.remainingArgs(1).map((text) => scanTsigName(d, text))
  draft.share = { position, keyNames: [...(draft.share?.keyNames ?? []), ...keyNames] }
}

/** `from ADDRESS... KEY` */
function scanFrom({ dispenser: d }: SetupContext, draft: Draft): void {
  const position = d.position()
  const args = d.remainingArgs(1)
  const addresses = args.slice(0, -1)
  const name = args.at(-1)!
  if (draft.from !== undefined) throw d.error('from appears twice; name all servers in one line')
  if (addresses.length === 0 || scanAddress(splitHostPort(name)?.host ?? '') !== undefined)
    throw d.error('from needs ADDRESS... KEY: servers, then the name of a key of tsig')
  const servers = addresses.map((text) => scanEndpoint(d, text))
  draft.from = { position, servers, keyName: scanTsigName(d, name) }
}

function scanTsigName(d: Dispenser, text: string): Uint8Array {
  const name = scanName(text)
  if (name === undefined) throw d.error(`${JSON.stringify(text)} is not the name of a key of tsig`)
  return name
}

function severalPlaces(d: Dispenser): InputError {
  return d.error('keys come from one place; use either key file or one line with keys')
}

/** `policy NAME` or `policy NAME { … }`. */
function scanPolicyProperty(c: SetupContext, draft: Draft): void {
  const { dispenser: d, shared } = c
  const position = d.position()
  const name = d.onlyArg()
  const lines: PolicyLine[] = []
  d.eachProperty(() => {
    const at = d.position()
    lines.push({ words: [d.value(), ...d.remainingArgs()], position: at })
  })
  const policies = shared.acquire(POLICIES)
  if (lines.length === 0) {
    draft.policy = policies.get(name)
    if (draft.policy !== undefined) return
    const guess = didYouMean(name, [...policies.keys()])
    throw at(position, `no policy '${name}' above; write policy ${name} { … }${guess}`)
  }
  if (policies.has(name)) throw at(position, `policy '${name}' exists; use another name`)
  draft.policy = withPlaces(position, () => scanPolicy(name, lines))
  policies.set(name, draft.policy)
  const line = lines.find(({ words }) => words[0] === 'algorithm')
  if (line !== undefined) warnOfAlgorithm(c, draft.policy.algorithm, line.position)
}

function warnOfAlgorithm(c: SetupContext, algorithm: number, position: Position): void {
  const advice = discouragement(algorithm)
  if (advice !== '') c.warn(advice, position)
}

function scanSplit({ dispenser: d }: SetupContext, draft: Draft): void {
  draft.rollsAt.push({ property: 'split', position: d.position() })
  d.noArgs()
  draft.overrides.split = true
}

function scanAlgorithmProperty(c: SetupContext, draft: Draft): void {
  const d = c.dispenser
  draft.rollsAt.push({ property: 'algorithm', position: d.position() })
  const name = d.onlyArg()
  const algorithm = scanAlgorithm(name)
  if (algorithm === undefined || !canSign(algorithm)) {
    const guess = didYouMean(name, SIGNING_NAMES)
    const known = SIGNING_NAMES.join(', ')
    throw d.error(`no keys are made for algorithm '${name}'; use one of ${known}${guess}`)
  }
  draft.overrides.algorithm = algorithm
  warnOfAlgorithm(c, algorithm, d.position())
}

/** `denial nsec|compact` or `denial nsec3 [opt-out]`. */
function scanDenial({ dispenser: d }: SetupContext, draft: Draft): void {
  const [denial, option] = d.remainingArgs(1, 2)
  if (denial !== 'nsec' && denial !== 'nsec3' && denial !== 'compact') {
    throw d.error(`unknown denial '${denial}'; use nsec, nsec3, nsec3 opt-out or compact`)
  }
  if (option !== undefined && (denial !== 'nsec3' || option !== 'opt-out')) {
    throw d.error(`unknown option '${option}'; only nsec3 has one, opt-out`)
  }
  draft.overrides.denial = denial
  draft.overrides.optOut = option !== undefined
}

function scanParents({ dispenser: d }: SetupContext, draft: Draft): void {
  draft.rollsAt.push({ property: 'parent', position: d.position() })
  for (const text of d.remainingArgs(1)) {
    const address = splitHostPort(text)
    if (address === undefined || scanAddress(address.host) === undefined) {
      const fix = 'write ADDRESS or ADDRESS:PORT'
      throw d.error(`parent ${JSON.stringify(text)} is not an address; ${fix}`)
    }
    draft.parents.push(address)
  }
}

function scanCapacity({ dispenser: d }: SetupContext, draft: Draft): void {
  draft.capacity = scanWhole(d, d.value(), d.remainingArgs(1, 1)[0]!, CAPACITY_MAX)
}

/** `signatures_per_second TOTAL [NETWORK]`. */
function scanRates({ dispenser: d }: SetupContext, draft: Draft): void {
  const property = d.value()
  const [total, network] = d.remainingArgs(1, 2)
  const most = scanWhole(d, property, total!, RATE_MAX)
  const perNetwork =
    network === undefined
      ? Math.min(most, RATES_DEFAULT.perNetwork)
      : scanWhole(d, property, network, most)
  draft.rates = { total: most, perNetwork }
}

function scanWhole(d: Dispenser, property: string, text: string, most: number): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= most) return number
  throw d.error(`${property} is ${JSON.stringify(text)}; use a whole number from 1 to ${most}`)
}

/** Faults of a policy, in the form of the dispenser's. */
function withPlaces<T>(position: Position, scan: () => T): T {
  try {
    return scan()
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    const [first, ...others] = error.all().map((one) => at(one.position ?? position, one.message))
    throw new InputErrors(first!, others)
  }
}

function at(position: Position, message: string): InputError {
  const { file, line } = position
  return new InputError(position, `${file}:${line} - Error during parsing: ${message}`)
}
