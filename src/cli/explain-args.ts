import { scanType } from '../dns/iana/types.ts'
import { ROOT_NAME, scanName } from '../dns/name/name.ts'
import { type Address, type Cidr, scanAddress, scanCidr } from '../dns/text/address.ts'
import { COREFILE_FLAGS, scanCorefileFlags, scanFlags } from './args.ts'

/** Arguments of `sextant explain`. */
export interface ExplainArgs {
  readonly conf: string | undefined
  readonly dnsPort: number
  /** Wire form. */
  readonly name: Uint8Array
  readonly type: number
  readonly source: Address
  readonly subnet: Cidr | undefined
  readonly seed: number
  readonly isJson: boolean
}

const SEED_MAX = 2 ** 32 - 1
const LOOPBACK: Address = { family: 1, bytes: new Uint8Array([127, 0, 0, 1]) }
const USAGE =
  'usage: sextant explain NAME [TYPE] --client ADDR | --subnet CIDR [-conf FILE] [--seed N] [-o json]'

/** Reads the arguments of `sextant explain`. Returns a string if they are invalid: the reason. */
export function scanExplainArgs(argv: readonly string[]): ExplainArgs | string {
  const split = splitArgs(argv)
  if (typeof split === 'string') return split
  const { words, values } = split
  const corefile = scanCorefileFlags({ set: new Set(), values, rest: [] })
  if (typeof corefile === 'string') return corefile
  const question = scanQuestion(words)
  if (typeof question === 'string') return question
  const client = scanClient(values)
  if (typeof client === 'string') return client
  const seedText = values.get('seed') ?? '1'
  const seed = /^\d{1,10}$/.test(seedText) ? Number(seedText) : -1
  if (seed < 0 || seed > SEED_MAX) return `--seed must be from 0 to ${SEED_MAX}, got "${seedText}"`
  const output = values.get('o') ?? 'text'
  if (output !== 'json' && output !== 'text') return `-o must be json or text, got "${output}"`
  return { ...corefile, ...question, ...client, seed, isJson: output === 'json' }
}

/** Splits the arguments into words and flags, in any order. */
function splitArgs(
  argv: readonly string[],
): { words: readonly string[]; values: ReadonlyMap<string, string> } | string {
  const words: string[] = []
  const values = new Map<string, string>()
  let rest = argv
  while (rest.length > 0) {
    const flags = scanFlags(rest, [], [...COREFILE_FLAGS, 'client', 'subnet', 'seed', 'o'])
    if (typeof flags === 'string') return flags
    for (const [name, value] of flags.values) values.set(name, value)
    const [word, ...others] = flags.rest
    if (word !== undefined) words.push(word)
    rest = others
  }
  return { words, values }
}

function scanQuestion(words: readonly string[]): Pick<ExplainArgs, 'name' | 'type'> | string {
  const [nameText, typeText = 'A', ...extra] = words
  if (nameText === undefined) return USAGE
  if (extra.length > 0) return `extra command line arguments: [${extra.join(' ')}]`
  const name = scanName(nameText, ROOT_NAME)
  if (name === undefined) return `invalid name: "${nameText}"`
  const type = scanType(typeText)
  if (type === undefined) return `unknown record type: "${typeText}"`
  return { name, type }
}

function scanClient(
  values: ReadonlyMap<string, string>,
): Pick<ExplainArgs, 'source' | 'subnet'> | string {
  const clientText = values.get('client')
  const subnetText = values.get('subnet')
  if (clientText === undefined && subnetText === undefined) {
    return `a client is missing: add --client ADDR (source address) or --subnet CIDR (client subnet)`
  }
  const source = clientText === undefined ? LOOPBACK : scanAddress(clientText)
  if (source === undefined) return `invalid client address: "${clientText}"`
  const subnet = subnetText === undefined ? undefined : scanSubnet(subnetText)
  if (subnetText !== undefined && subnet === undefined) {
    return `invalid client subnet: "${subnetText}": write it as 192.0.2.0/24 or 192.0.2.1`
  }
  return { source, subnet }
}

/** Parses a prefix, or an address as the longest prefix. */
function scanSubnet(text: string): Cidr | undefined {
  const cidr = scanCidr(text)
  if (cidr !== undefined) return cidr
  const address = scanAddress(text)
  return address === undefined ? undefined : { ...address, bits: address.bytes.length * 8 }
}
