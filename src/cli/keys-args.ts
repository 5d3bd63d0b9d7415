import { InputError } from '../base/errors.ts'
import { didYouMean } from '../base/nearest.ts'
import { canSign, SIGNING_NAMES, scanAlgorithm, schemeOf } from '../dns/dnssec/algorithms.ts'
import type { DigestType } from '../dns/dnssec/ds.ts'
import { type HostPort, splitHostPort } from '../dns/host-port.ts'
import { lowerName, scanName } from '../dns/name/name.ts'
import { scanAddress } from '../dns/text/address.ts'
import type { KeyRole } from '../signing/rolls/policy.ts'
import { type CommandArgs, type Flags, flagsOf, isOn, keyOf, scanMixed } from './args.ts'
import { type DataFormat, FORMAT_FLAG, readFormat } from './data-format.ts'

interface SecretName {
  readonly namespace: string
  readonly name: string
}

/** The arguments of `sextant keys`. */
export interface KeysArgs {
  readonly action: Action
  /** Lower-case wire form; undefined = all zones, only with `list`. */
  readonly zone: Uint8Array | undefined
  /** A file, or a key; '' = the action has no such argument. */
  readonly subject: string
  /** Undefined = the directory that the Corefile names. */
  readonly directory: string | undefined
  /** In place of a directory. */
  readonly secret: SecretName | undefined
  /** '' = as kubectl. */
  readonly kubeconfig: string
  /** Path of the Corefile, or `stdin`; undefined = ./Corefile. */
  readonly conf: string | undefined
  readonly format: DataFormat
  readonly role: KeyRole | undefined
  readonly algorithm: number | undefined
  /** Of an RSA key; undefined = the default. */
  readonly bits: number | undefined
  readonly isPem: boolean
  /** Only the public key. */
  readonly isPublic: boolean
  /** Folder of an export; undefined = standard output. */
  readonly to: string | undefined
  readonly digest: DigestType
  readonly parent: HostPort | undefined
  /** The parent has the DS that are wanted. */
  readonly isPublished: boolean
  /** Whether the parent should have a DS. */
  readonly delegation: 'signed' | 'unsigned' | undefined
}

export const KEYS: CommandArgs = {
  usage: `
    keys list [ZONE] [-keys DIR] [-o FORMAT]
    keys generate ZONE [--ksk|--zsk|--csk] [--algorithm NAME] [--bits N] [-keys DIR]
    keys import ZONE FILE [--ksk|--zsk|--csk] [--algorithm NAME] [--public] [-keys DIR]
    keys export ZONE KEY [--pem|--public] [--to DIR] [-keys DIR]
    keys roll ZONE --ksk|--zsk|--csk|--algorithm NAME|--delegation unsigned|signed [-keys DIR]
    keys ds ZONE [--digest NAME] [-parent ADDR] [--published] [-keys DIR] [-o FORMAT]
    keys retire ZONE KEY [-keys DIR]
  `,
  flags: [
    ...flagsOf(`
    ZONE | | the zone of the keys
    KEY | | tag or id of a key, such as 12345 or Kexample.org.+013+12345
    FILE | | a file of a key pair in BIND's format, or a private key in BIND's format or PEM
    -keys DIR | (the directory that the Corefile names) | the directory of the keys
    -secret NAMESPACE/NAME | | the Secret of Kubernetes with the keys, in place of a directory
    --kubeconfig FILE | (KUBECONFIG, or ~/.kube/config) | with -secret: the configuration of kubectl
    -conf FILE | (./Corefile) | the Corefile; stdin = read it from standard input
    --csk | | make or roll a key that signs all records (default)
    --ksk | | make or roll a key that signs DNSKEY, CDS and CDNSKEY
    --zsk | | make or roll a key that signs all other records
    --algorithm NAME | ECDSAP256SHA256 | algorithm of the key, one of ${SIGNING_NAMES.join(', ')}; with import, only for a file without it
    --bits N | 2048 | length of an RSA key: 2048, 3072 or 4096
    --public | | only the public key; with import, the key of another provider that also signs the zone
    --pem | | print the private key as PKCS #8 in PEM instead of BIND's format
    --to DIR | (standard output) | write the files of the key into DIR
    --delegation unsigned|signed | | ask the parent by CDS to remove the DS, or to add it again
    --digest NAME | SHA-256 | digest of the DS: SHA-256 or SHA-384
    -parent ADDR | | ask this nameserver of the parent zone which DS it has now: IP or IP:PORT
    --published | | confirm that the parent has exactly these DS; for a zone without parent in the Corefile
  `),
    ...FORMAT_FLAG,
  ],
}

const SECRET = /^([a-z0-9-]{1,63})\/([a-z0-9.-]{1,253})$/
const ROLES = ['csk', 'ksk', 'zsk'] as const
const BITS: readonly string[] = ['2048', '3072', '4096']
const DIGESTS: ReadonlyMap<string, DigestType> = new Map([
  ['SHA-256', 2],
  ['SHA256', 2],
  ['2', 2],
  ['SHA-384', 4],
  ['SHA384', 4],
  ['4', 4],
])

/** The actions, and the words and flags of each. */
const ACTIONS = {
  list: { words: [], flags: ['o'] },
  generate: { words: ['ZONE'], flags: [...ROLES, 'algorithm', 'bits', 'o'] },
  import: { words: ['ZONE', 'FILE'], flags: [...ROLES, 'algorithm', 'public', 'o'] },
  export: { words: ['ZONE', 'KEY'], flags: ['pem', 'public', 'to'] },
  roll: { words: ['ZONE'], flags: [...ROLES, 'algorithm', 'delegation'] },
  ds: { words: ['ZONE'], flags: ['digest', 'parent', 'published', 'o'] },
  retire: { words: ['ZONE', 'KEY'], flags: [] },
} as const
type Action = keyof typeof ACTIONS
const PLACE_FLAGS: readonly string[] = ['keys', 'secret', 'kubeconfig', 'conf']

/** @throws InputError. */
export function scanKeysArgs([first = '', ...argv]: readonly string[]): KeysArgs {
  const names = Object.keys(ACTIONS) as Action[]
  const action = names.find((name) => name === first)
  if (action === undefined)
    refuse(`keys needs one of ${names.join(', ')} as its first word${didYouMean(first, names)}`)
  const flags = scanMixed(argv, KEYS.flags)
  if (typeof flags === 'string') refuse(`keys ${action}: ${flags}`)
  checkFlags(action, flags)
  const [zone, subject = ''] = wordsOf(action, flags.rest)
  const { given } = flags
  const algorithm = scanAlgorithmFlag(given.get('algorithm'))
  const bits = scanBits(given.get('bits'))
  if (bits !== undefined && !isRsa(algorithm))
    refuse('--bits is the length of an RSA key; add --algorithm RSASHA256, or leave it out')
  return {
    action,
    zone: zone === undefined ? undefined : scanZone(zone),
    subject,
    ...scanPlace(given),
    conf: given.get('conf') || undefined,
    format: readFormat(given),
    role: scanRole(flags),
    algorithm,
    bits,
    isPem: isOn(flags, 'pem'),
    isPublic: isOn(flags, 'public'),
    to: given.get('to') || undefined,
    digest: scanDigest(given.get('digest') ?? 'SHA-256'),
    parent: scanParent(given.get('parent')),
    isPublished: isOn(flags, 'published'),
    delegation: scanDelegation(given.get('delegation')),
  }
}

function scanPlace(given: Flags['given']): Pick<KeysArgs, 'directory' | 'secret' | 'kubeconfig'> {
  const directory = given.get('keys') || undefined
  const secret = given.get('secret') || undefined
  const kubeconfig = given.get('kubeconfig') ?? ''
  if (secret === undefined) {
    if (kubeconfig !== '') refuse('--kubeconfig needs -secret NAMESPACE/NAME')
    return { directory, secret, kubeconfig }
  }
  if (directory !== undefined) refuse('-keys and -secret exclude each other; use one')
  const [, namespace, name] = SECRET.exec(secret) ?? []
  if (namespace === undefined || name === undefined)
    refuse(`-secret must be NAMESPACE/NAME, not ${JSON.stringify(secret)}`)
  return { directory, secret: { namespace, name }, kubeconfig }
}

function checkFlags(action: Action, { given }: Flags): void {
  const known: readonly string[] = [...PLACE_FLAGS, ...ACTIONS[action].flags]
  for (const key of given.keys()) {
    const flag = KEYS.flags.find(({ name }) => keyOf(name) === key)
    if (!known.includes(key)) refuse(`keys ${action} has no flag ${flag?.name}; leave it out`)
  }
}

function wordsOf(action: Action, rest: readonly string[]): readonly string[] {
  const { words } = ACTIONS[action]
  const missing = words[rest.length]
  if (missing !== undefined) refuse(`keys ${action}: ${missing} is missing`)
  const extra = rest[Math.max(words.length, 1)]
  if (extra !== undefined) refuse(`keys ${action}: unexpected argument ${JSON.stringify(extra)}`)
  return rest
}

function scanZone(text: string): Uint8Array {
  const zone = scanName(text)
  if (zone === undefined) refuse(`${JSON.stringify(text)} is not a domain name`)
  return lowerName(zone)
}

function scanRole(flags: Flags): KeyRole | undefined {
  const roles = ROLES.filter((role) => isOn(flags, role))
  if (roles.length > 1) refuse(`--${roles.join(' and --')} exclude each other; use one`)
  return roles[0]
}

function scanAlgorithmFlag(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const algorithm = scanAlgorithm(text)
  if (algorithm !== undefined && canSign(algorithm)) return algorithm
  return refuse(
    `--algorithm must be one of ${SIGNING_NAMES.join(', ')}, not ${JSON.stringify(text)}${didYouMean(text, SIGNING_NAMES)}`,
  )
}

function isRsa(algorithm: number | undefined): boolean {
  return algorithm !== undefined && schemeOf(algorithm)?.keyType === 'rsa'
}

function scanBits(text: string | undefined): number | undefined {
  if (text === undefined || BITS.includes(text)) return text === undefined ? text : Number(text)
  return refuse(`--bits must be one of ${BITS.join(', ')}, not ${JSON.stringify(text)}`)
}

function scanDigest(text: string): DigestType {
  const digest = DIGESTS.get(text.toUpperCase())
  return digest ?? refuse(`--digest must be SHA-256 or SHA-384, not ${JSON.stringify(text)}`)
}

function scanDelegation(text: string | undefined): KeysArgs['delegation'] {
  if (text === undefined || text === 'signed' || text === 'unsigned') return text
  return refuse(`--delegation must be signed or unsigned, not ${JSON.stringify(text)}`)
}

function scanParent(text: string | undefined): HostPort | undefined {
  if (text === undefined) return undefined
  const server = splitHostPort(text)
  if (server !== undefined && scanAddress(server.host) !== undefined) return server
  return refuse(`-parent must be IP or IP:PORT, not ${JSON.stringify(text)}`)
}

function refuse(message: string): never {
  throw new InputError(undefined, message)
}
