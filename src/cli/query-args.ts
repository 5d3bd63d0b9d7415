import { didYouMean } from '../base/nearest.ts'
import { RRClass, RRType, scanClass, scanType } from '../dns/iana/index.ts'
import { scanName } from '../dns/name/name.ts'
import { scanBase64 } from '../dns/rdata/binary.ts'
import { type Address, type Cidr, scanAddress, scanCidr } from '../dns/text/address.ts'
import { ALGORITHM_NAMES, HMAC_SHA256, scanAlgorithm } from '../dns/tsig/algorithm.ts'
import { createTsigKey, type TsigKey } from '../dns/tsig/key.ts'
import { type CommandArgs, flagsOf } from './args.ts'
import { type DataFormat, FORMAT_FLAG, scanFormat } from './data-format.ts'

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
  readonly zoneVersion: boolean
  /** Print rdata only. */
  readonly short: boolean
  readonly subnet: Cidr | undefined
  /** Key that signs queries and must have signed replies. */
  readonly key: TsigKey | undefined
  /** Timeout of each attempt, in seconds: 1..60. */
  readonly timeoutSeconds: number
  /** Number of attempts over UDP: 1..10. */
  readonly tries: number
  /** `table`: as dig prints it. */
  readonly format: DataFormat
}

type Draft = { -readonly [Key in keyof QueryArgs]?: QueryArgs[Key] }

const DEFAULTS = {
  server: '127.0.0.1',
  port: 53,
  timeoutSeconds: 5,
  tries: 3,
  format: 'table' as DataFormat,
}

export const QUERY: CommandArgs = {
  usage: 'query [@SERVER] [-p PORT] NAME [TYPE] [CLASS] [OPTION]...',
  flags: [
    ...flagsOf(`
    @SERVER | ${DEFAULTS.server} | IP address or host name
    -p PORT | ${DEFAULTS.port} | port, 1 to 65535
    -x ADDRESS | | query the PTR records of ADDRESS; replaces NAME
    -y [ALGORITHM:]NAME:SECRET | (hmac-sha256) | sign with this TSIG key, and reject replies without a valid signature; SECRET is base64
    +tcp, +vc | off | use TCP
    +dnssec, +do | off | set the DO bit
    +recurse, +rec | on | set the RD bit
    +nsid | off | request the name server identifier
    +zoneversion | off | request the serial of the zone (RFC 9660)
    +short | off | print only the data of the answers
    +subnet CIDR | | send EDNS Client Subnet; a single address means /32 or /128, and 0 means 0.0.0.0/0
    +time, +timeout N | ${DEFAULTS.timeoutSeconds} | seconds for each try, 1 to 60
    +tries N | ${DEFAULTS.tries} | tries over UDP, 1 to 10
  `),
    ...flagsOf(
      `-o ${FORMAT_FLAG[0]!.argument} | table | form of the output; table and wide = as dig prints it`,
    ),
  ],
}

type Switch = 'tcp' | 'dnssecOk' | 'recurse' | 'nsid' | 'zoneVersion' | 'short'
/** Options that are on with `+x` and off with `+nox`, each with the field that it sets. */
const SWITCHES: Readonly<Record<string, Switch>> = {
  '+tcp': 'tcp',
  '+dnssec': 'dnssecOk',
  '+recurse': 'recurse',
  '+nsid': 'nsid',
  '+zoneversion': 'zoneVersion',
  '+short': 'short',
}
/** Reads the value of an option into a draft. Returns a string if it is invalid: the reason. */
type ScanValue = (text: string, draft: Draft) => string | undefined
const LETTERS: Readonly<Record<string, ScanValue>> = {
  '-p': scanPort,
  '-x': scanReverse,
  '-y': scanKey,
  '-o': scanOutput,
}
const VALUES: Readonly<Record<string, ScanValue>> = {
  '+subnet': (text, draft) => {
    draft.subnet = scanSubnet(text)
    return draft.subnet === undefined ? 'must be an address or a CIDR' : undefined
  },
  '+time': (text, draft) => {
    const seconds = scanNumber(text, 1, 60)
    if (seconds === undefined) return 'must be from 1 to 60 seconds'
    draft.timeoutSeconds = seconds
    return undefined
  },
  '+tries': (text, draft) => {
    const tries = scanNumber(text, 1, 10)
    if (tries === undefined) return 'must be from 1 to 10'
    draft.tries = tries
    return undefined
  },
}

/** Reads the arguments as dig does. Returns a string if they are invalid: the reason. */
export function scanQueryArgs(argv: readonly string[]): QueryArgs | string {
  const draft: Draft = {}
  const words: string[] = []
  for (let i = 0; i < argv.length; i++) {
    const arg = argv[i]!
    let complaint: string | undefined
    const scan = LETTERS[arg.slice(0, 2)]
    // The value of an option may follow its letter directly.
    if (scan !== undefined) complaint = scan(arg.slice(2) || (argv[++i] ?? ''), draft)
    else if (arg.startsWith('-')) complaint = unknownOption(arg)
    else if (arg.startsWith('+')) complaint = scanOption(arg, draft)
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

function scanOutput(text: string, draft: Draft): string | undefined {
  const value = text.replace(/^=/, '')
  const format = scanFormat(new Map([['o', value]]))
  if (typeof format !== 'string') return format.fault
  draft.format = format
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

/** Reads `+x`, `+nox` or `+x=VALUE`. */
function scanOption(arg: string, draft: Draft): string | undefined {
  const [name = '', value] = arg.split(/=(.*)/s)
  if (value !== undefined) {
    const scan = VALUES[mainName(name)]
    if (scan === undefined) return unknownOption(name, '=')
    const want = scan(value, draft)
    return want && `invalid value of ${name}: ${JSON.stringify(value)}, ${want}`
  }
  const on = SWITCHES[mainName(name)]
  const option = on ?? SWITCHES[mainName(name.replace(/^\+no/, '+'))]
  if (option === undefined) return unknownOption(name)
  draft[option] = on !== undefined
  return undefined
}

function unknownOption(name: string, sign = ''): string {
  const known = QUERY.flags.flatMap(({ name, aliases }) => [name, ...aliases])
  return `invalid option: ${name}${sign}${didYouMean(name, known)}`
}

/** The first name of a flag that has several. */
function mainName(name: string): string {
  return QUERY.flags.find(({ aliases }) => aliases.includes(name))?.name ?? name
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
  if (draft.type === RRType.AXFR && ['json', 'yaml'].includes(draft.format ?? ''))
    return `-o ${draft.format} is not possible with AXFR, which prints a zone file: remove it`
  return {
    type: RRType.A,
    rrclass: RRClass.IN,
    ...DEFAULTS,
    tcp: false,
    dnssecOk: false,
    recurse: true,
    nsid: false,
    zoneVersion: false,
    short: false,
    subnet: undefined,
    key: undefined,
    ...draft,
    name,
  }
}
