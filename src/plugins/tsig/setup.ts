import { resolve } from 'node:path'
import { InputError, type Position } from '../../base/errors.ts'
import { isReadableByOthers } from '../../base/stat.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { Opcode, scanType } from '../../dns/iana/index.ts'
import { nameKey, printName, scanName } from '../../dns/name/name.ts'
import { scanBase64 } from '../../dns/rdata/binary.ts'
import { ALGORITHM_NAMES, HMAC_SHA256, scanAlgorithm } from '../../dns/tsig/algorithm.ts'
import { createTsigKey, TSIG_KEYS, type TsigKey } from '../../dns/tsig/key.ts'
import { type KeyConfig, readKeyFile } from '../../dns/tsig/key-file.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import { scanZoneArgsOrBlock } from '../../plugin/arguments/zones.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { CheckHook, DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import type { Handler } from '../../plugin/handler.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { type Required, Tsig } from './tsig.ts'

interface TsigConfig {
  zones: readonly Uint8Array[]
  readonly keys: { readonly key: KeyConfig; readonly position: Position }[]
  readonly files: { readonly path: string; readonly position: Position }[]
  qtypes: Required
  opcodes: Required
}

/** `tsig [ZONES...] { secret NAME KEY … }`: signed requests and replies. */
export const tsig: Directive = {
  name: 'tsig',
  setup(c) {
    const config = scanConfig(c)
    const keyring = c.block.shared.acquire(TSIG_KEYS)
    const take = (keys: readonly KeyConfig[]): void => keyring.replace(keys.map(createKey))
    const broadcast = c.broadcast<readonly KeyConfig[]>(take)
    const { qtypes, opcodes } = config
    const zones = new ZoneSet(config.zones)
    const slots = c.counters()
    const options = { zones, keyring, clock: c.clock, qtypes, opcodes, slots }
    const start = (): void => {
      const keys = loadKeys(config, (warning) => c.log.warning(warning.print(), 'tsig-key-warning'))
      take(keys)
      broadcast.publish(keys)
    }
    const check: CheckHook = ({ warn, read }) => {
      try {
        take(loadKeys(config, warn))
        for (const { path } of config.files) read(`${path}: keys`)
        return []
      } catch (error) {
        if (!(error instanceof InputError)) throw error
        return error.all()
      }
    }
    const handler = (next: Handler): Handler => new Tsig(next, options)
    return [exportCounts(c, slots), { handler, seesNotify: true, start, check }]
  },
}

function exportCounts(c: SetupContext, slots: CounterSlots): DirectivePart {
  const counter = c.metrics.counter(
    'sextant_tsig_unverified_total',
    'Counter of signed requests dropped because too many others had wrong signatures.',
    ['server', 'zone', 'view'],
  )
  return collectWhileServing(c, () =>
    slots.forEach((counts, { server, zone, view }) => {
      const count = counts.take(0)
      if (count > 0) counter.inc({ server, zone, view }, count)
    }),
  )
}

function createKey({ name, algorithm, secret }: KeyConfig): TsigKey {
  return createTsigKey(name, scanAlgorithm(algorithm) ?? HMAC_SHA256, secret)
}

/** Returns all keys of the Corefile and of its key files. Throws InputError. */
function loadKeys(config: TsigConfig, warn: (warning: InputError) => void): KeyConfig[] {
  const keys = new Map<string, KeyConfig>()
  const add = (key: KeyConfig, position: Position): void => {
    const name = nameKey(key.name)
    if (keys.has(name)) {
      const message = `the key ${printName(key.name)} appears twice; remove one`
      throw new InputError(position, message)
    }
    keys.set(name, key)
  }
  for (const { key, position } of config.keys) add(key, position)
  for (const { path, position } of config.files) {
    for (const key of readKeyFile(path, position)) add(key, position)
    if (!isReadableByOthers(path)) continue
    const message = `any user of this machine can read the secrets in ${path}; chmod o-r it`
    warn(new InputError(position, message))
  }
  return [...keys.values()]
}

function scanConfig(c: SetupContext): TsigConfig {
  const d = c.dispenser
  const config: TsigConfig = {
    zones: [],
    keys: [],
    files: [],
    qtypes: new Set<number>(),
    opcodes: new Set<number>(),
  }
  for (let i = 0; nextOnce(d, i); i++) {
    config.zones = scanZoneArgsOrBlock(d, d.remainingArgs(), c.block)
    d.eachProperty(() => scanProperty(c, config))
  }
  return config
}

function scanProperty(c: SetupContext, config: TsigConfig): void {
  const d = c.dispenser
  const property = d.value()
  const position = d.position()
  const args = d.remainingArgs()
  if (property === 'secret') {
    config.keys.push({ key: scanSecret(d, args), position })
  } else if (property === 'secrets') {
    if (args.length !== 1) throw d.error('secrets needs the path of one file of keys')
    config.files.push({ path: resolve(c.block.root, args[0]!), position })
  } else if (property === 'require') {
    config.qtypes = scanRequired(d, args, 'query type', scanType)
  } else if (property === 'require_opcode') {
    config.opcodes = scanRequired(d, args, 'opcode', scanOpcode)
  } else {
    throw d.unknownProperty(property, ['secret', 'secrets', 'require', 'require_opcode'])
  }
}

/** Error messages must not contain secrets, so arguments are not echoed. */
function scanSecret(d: Dispenser, args: readonly string[]): KeyConfig {
  const [nameText, secretText, algorithmText] = args
  if (nameText === undefined || secretText === undefined || args.length > 3) {
    throw d.error('secret needs NAME KEY, and an algorithm if it is not hmac-sha256')
  }
  const name = scanName(nameText)
  if (name === undefined) throw d.error('the name of the secret is not a domain name')
  const secret = scanBase64(secretText)
  if (secret === undefined || secret.length === 0) throw d.error('the secret is not base64')
  const algorithm = algorithmText === undefined ? HMAC_SHA256 : scanAlgorithm(algorithmText)
  if (algorithm === undefined) throw d.error(`the algorithm must be one of ${ALGORITHM_NAMES}`)
  return { name, algorithm: algorithm.text, secret }
}

function scanRequired(
  d: Dispenser,
  args: readonly string[],
  what: string,
  scan: (text: string) => number | undefined,
): Required {
  if (args.length === 0) throw d.argError()
  if (args[0] === 'all') return 'all'
  if (args[0] === 'none') return new Set()
  const numbers = args.map((text) => {
    const number = scan(text)
    if (number === undefined) throw d.error(`unknown ${what} '${text}'`)
    return number
  })
  return new Set(numbers)
}

const opcodes: Readonly<Record<string, number>> = Opcode

function scanOpcode(text: string): number | undefined {
  return opcodes[text.toUpperCase()]
}
