import { InputError } from '../../base/errors.ts'
import { discouragements } from '../../dns/dnssec/algorithms.ts'
import type { SigningKey } from '../../dns/dnssec/dnskey.ts'
import { composeDs } from '../../dns/dnssec/ds.ts'
import { equalNames, printName } from '../../dns/name/name.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { KeyDirectory } from '../../signing/keys/key-directory.ts'
import { readKeyFile } from '../../signing/keys/key-file.ts'
import { isKeySigning } from '../../signing/keys/public-text.ts'
import type { ZoneKeys } from '../../signing/zone-keys.ts'
import type { SignConfig } from './config.ts'

/** SHA-256. CoreDNS adds digests of SHA-1, which RFC 9905 forbids. */
const CDS_DIGEST = 2

/** The keys of a zone. */
export interface FoundKeys {
  readonly keys: ZoneKeys
  readonly tags: readonly number[]
  /** What works, but probably not as intended. */
  readonly warnings: readonly string[]
}

/** Reads the keys of a zone. @throws InputError at the place in the Corefile. */
export async function readKeys(
  { keyDirectories, keyFiles, position, zone }: SignConfig,
  { clock, timers }: Pick<SetupContext, 'clock' | 'timers'>,
): Promise<FoundKeys> {
  const signers: SigningKey[] = []
  const dnskeys: Uint8Array[] = []
  const warnings: string[] = []
  const zoneText = printName(zone)
  for (const file of keyFiles) {
    const key = at(position, () => readKeyFile(file))
    // As in CoreDNS, one key may sign several zones.
    if (!equalNames(key.zone, zone))
      warnings.push(`key ${file} is of ${printName(key.zone)}, and signs ${zoneText}`)
    signers.push(key)
    dnskeys.push(key.dnskey)
  }
  for (const path of keyDirectories) {
    const { keys, faults } = await new KeyDirectory({ path, clock, timers }).load()
    warnings.push(...faults.map((fault) => fault.print()))
    for (const { privateKey, ...key } of keys.filter((one) => equalNames(one.zone, zone))) {
      dnskeys.push(key.dnskey)
      if (privateKey !== undefined) signers.push({ ...key, privateKey })
    }
  }
  if (signers.length === 0) {
    const message = `plugin/sign: no key of ${zoneText} in ${keyDirectories.join(', ')}`
    throw new InputError(
      position,
      `${message}; make one with \`sextant keys generate ${zoneText}\``,
    )
  }
  warnings.push(...discouragements(dnskeys).map((advice) => `key of ${zoneText}: ${advice}`))
  return { keys: rolesOf(zone, signers, dnskeys), tags: signers.map(({ tag }) => tag), warnings }
}

/** With keys of both kinds, KSKs sign DNSKEY, CDS and CDNSKEY, and ZSKs the rest. Otherwise, each key signs all. */
function rolesOf(
  zone: Uint8Array,
  signers: readonly SigningKey[],
  dnskeys: readonly Uint8Array[],
): ZoneKeys {
  const keySigning = signers.filter(({ flags }) => isKeySigning(flags))
  const zoneSigning = signers.filter(({ flags }) => !isKeySigning(flags))
  const isSplit = keySigning.length > 0 && zoneSigning.length > 0
  const entries = (isSplit ? keySigning : signers).map(({ dnskey }) => dnskey)
  return {
    dnskeys,
    dnskeyTtlSeconds: DNSKEY_TTL_SECONDS,
    cds: entries.map((dnskey) => composeDs(zone, dnskey, CDS_DIGEST)),
    cdnskeys: entries,
    keySigners: isSplit ? keySigning : signers,
    zoneSigners: isSplit ? zoneSigning : signers,
  }
}

const DNSKEY_TTL_SECONDS = 3600

function at<T>(position: SignConfig['position'], read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    throw new InputError(position, `plugin/sign: ${error.print()}`, error)
  }
}
