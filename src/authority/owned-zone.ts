import type { SetKey } from '../xfr/zone-versions.ts'
import type { SignatureReport } from '../zone/zonefile/check-signatures.ts'
import type { ServedZone } from './file-zones.ts'
import type { VersionMemory } from './version-memory.ts'

/** A zone in the form of its owner, on the control thread. */
export interface OwnedZone extends ServedZone {
  readonly zoneText: string
  /** The data of the version in force for other threads; undefined = no version is in force. */
  readonly shared: VersionMemory | undefined
  /** File or primary that it comes from; undefined = not known. */
  readonly path?: string
  /** Serial of the SOA in force. */
  readonly serial: number
  /** Changes since the version published before; undefined = anything may have changed. */
  readonly changed?: readonly SetKey[] | undefined
  /** What its owner found in the version in force, and logged; undefined = the owner did not check it. */
  readonly signatures?: SignatureReport | undefined
  /** Where its owner keeps it for the next start; undefined = nowhere. */
  readonly snapshot?: { readonly path: string } | undefined
}
