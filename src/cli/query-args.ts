import { didYouMean } from '../base/nearest.ts'
import { RRClass, RRType, scanClass, scanType } from '../dns/iana/index.ts'
import { scanName } from '../dns/name/name.ts'
import { scanBase64 } from '../dns/rdata/binary.ts'
import { type Address, type Cidr, scanAddress, scanCidr } from '../dns/text/address.ts'
import { ALGORITHM_NAMES, HMAC_SHA256, scanAlgorithm } from '../dns/tsig/algorithm.ts'
import { createTsigKey, type TsigKey } from '../dns/tsig/key.ts'

/** The arguments of `sextant query`. */
export interface QueryArgs {
  readonly name: Uint8Array
  readonly type: number
  readonly rrclass: number
  /** IP address or host name. */
  readonly server: string
  readonly port: number
  readonly tcp: boolean
  readonly dnssecOk: boolean
  readonly recurse: boolean
  readonly nsid: boolean
  /** Print rdata only. */
  readonly short: boolean
  readonly subnet: Cidr | undefined
  /** Key that signs queries and must have signed replies. */
  readonly key: TsigKey | undefined
  /** Timeout of each attempt, in seconds: 1..60. */
  readonly timeoutSeconds: number
  /** Number of attempts over UDP: 1..10. */
  readonly tries: number
}

type Draft = { -readonly [Key in keyof QueryArgs]?: QueryArgs[Key] }

/** Options that are on with `+x` and off with `+nox`. */
const SWITCHES = new Map<string, 'tcp' | 'dnssecOk' | 'recurse' | 'nsid' | 'short'>([
  ['tcp', 'tcp'],
  ['vc', 'tcp'],
  ['dnssec', 'dnssecOk'],
  ['do', 'dnssecOk'],
  ['recurse', 'recurse'],
  ['rec', 'recurse'],
  ['nsid', 'nsid'],
  ['short', 'short'],
])

/** Reads the arguments as dig does. Returns a string if they are invalid: the reason. */
export function scanQueryArgs(argv: readonly string[]): QueryArgs | string {
  const draft: Draft = {}
  const words: string[] = []
  for (let i = 0; i < argv.length; i++) {
    const arg = argv[i]!
    let complaint: string | undefined
    const letter = arg.slice(0, 2)
    // The value of an option may follow its letter directly.
    const value = (): string => (arg.length > 2 ? arg.slice(2) : (argv[++i] ?? ''))
    if (letter === '-p') complaint = scanPort(value(), draft)
    else if (letter === '-y') complaint = scanKey(value(), draft)
    else if (letter === '-x') complaint = scanReverse(value(), draft)
    else if (arg.startsWith('-')) complaint = `invalid option: ${arg}`
    else if (arg.startsWith('+')) complaint = scanOption(arg.slice(1), draft)
    else if (arg.startsWith('@')) draft.server = arg.slice(1)
    else words.push(arg)
    if (complaint !== undefined) return complaint
  }
  return scanWords(words, draft) ?? complete(draft)
}

function scanPort(text: string, draft: Draft): string | undefined {
  const port = scanNumber(text, 1, 65535)
  if (port === undefined) return `invalid port: ${JSON.stringify(text)}, must be from 1 to 65535`
  draft.port = port
  return undefined
}

/** Reads `[ALGORITHM:]NAME:SECRET`. Messages do not contain the secret. */
function scanKey(text: string, draft: Draft): string | undefined {
  const parts = text.split(':')
  const secret = scanBase64(parts.pop() ?? '')
  const name = scanName(parts.pop() ?? '')
  const algorithm = parts.length === 0 ? HMAC_SHA256 : scanAlgorithm(parts.join(':'))
  if (
    name === undefined ||
    algorithm === undefined ||
    secret === undefined ||
    secret.length === 0
  ) {
    return `invalid key of -y: must be [ALGORITHM:]NAME:SECRET, with the secret in base64 and the algorithm one of ${ALGORITHM_NAMES}`
  }
  draft.key = createTsigKey(name, algorithm, secret)
  return undefined
}

function scanNumber(text: string, min: number, max: number): number | undefined {
  const value = /^\d{1,5}$/.test(text) ? Number(text) : -1
  return value >= min && value <= max ? value : undefined
}

/** Reads `-x ADDRESS`, which queries the PTR records of an address. */
function scanReverse(text: string, draft: Draft): string | undefined {
  const address = scanAddress(text)
  if (address === undefined) return `invalid address: ${JSON.stringify(text)}`
  draft.name = scanName(reverseName(address))!
  draft.type ??= RRType.PTR
  return undefined
}

/** RFC 1035 section 3.5, RFC 3596 section 2.5. */
function reverseName({ family, bytes }: Address): string {
  if (family === 1) return `${[...bytes].reverse().join('.')}.in-addr.arpa.`
  const nibbles = [...Buffer.from(bytes).toString('hex')]
  return `${nibbles.reverse().join('.')}.ip6.arpa.`
}

function scanOption(text: string, draft: Draft): string | undefined {
  const [name = '', value] = text.split(/=(.*)/s)
  if (value !== undefined) return scanValue(name, value, draft)
  const on = SWITCHES.get(name)
  const off = name.startsWith('no') ? SWITCHES.get(name.slice(2)) : undefined
  const option = on ?? off
  if (option === undefined) return `invalid option: +${text}`
  draft[option] = on !== undefined
  return undefined
}

function scanValue(name: string, value: string, draft: Draft): string | undefined {
  const complaint = `invalid value of +${name}: ${JSON.stringify(value)}`
  switch (name) {
    case 'subnet': {
      const subnet = scanSubnet(value)
      if (subnet === undefined) return `${complaint}, must be an address or a CIDR`
      draft.subnet = subnet
      return undefined
    }
    case 'time':
    case 'timeout': {
      const seconds = scanNumber(value, 1, 60)
      if (seconds === undefined) return `${complaint}, must be from 1 to 60 seconds`
      draft.timeoutSeconds = seconds
      return undefined
    }
    case 'tries': {
      const tries = scanNumber(value, 1, 10)
      if (tries === undefined) return `${complaint}, must be from 1 to 10`
      draft.tries = tries
      return undefined
    }
    default:
      return `invalid option: +${name}=`
  }
}

/** A CIDR. An address without a prefix length means the whole address, and 0 means no prefix. */
function scanSubnet(text: string): Cidr | undefined {
  if (text === '0') return scanCidr('0.0.0.0/0')
  const address = scanAddress(text)
  if (address !== undefined) return { ...address, bits: address.bytes.length * 8 }
  return scanCidr(text)
}

/**
 * NAME, TYPE and CLASS in any order; with `-x`, the name is omitted. An argument that can be a type
 * or class is one, unless no other argument is left for the name: then the first one is the name.
 */
function scanWords(words: readonly string[], draft: Draft): string | undefined {
  const nameIndex = Math.max(
    0,
    words.findIndex((word) => scanType(word) === undefined && scanClass(word) === undefined),
  )
  for (const [index, word] of words.entries()) {
    if (index === nameIndex && draft.name === undefined) {
      const name = scanName(word)
      if (name === undefined) return `invalid name: ${JSON.stringify(word)}`
      draft.name = name
      continue
    }
    // ANY is both a type and a class: it means the type.
    const type = scanType(word)
    const rrclass = scanClass(word)
    if (type !== undefined) draft.type = type
    else if (rrclass !== undefined) draft.rrclass = rrclass
    else return `unknown type: ${JSON.stringify(word)}${didYouMean(word, Object.keys(RRType))}`
  }
  return undefined
}

function complete(draft: Draft): QueryArgs | string {
  const { name } = draft
  if (name === undefined) return 'missing name: add the name to query'
  if (draft.server === '') return 'missing server after @: add an address or host name'
  if (draft.type === RRType.IXFR)
    return 'IXFR is not supported: use AXFR, which transfers the whole zone'
  return {
    type: RRType.A,
    rrclass: RRClass.IN,
    server: '127.0.0.1',
    port: 53,
    tcp: false,
    dnssecOk: false,
    recurse: true,
    nsid: false,
    short: false,
    subnet: undefined,
    key: undefined,
    timeoutSeconds: 5,
    tries: 3,
    ...draft,
    name,
  }
}
