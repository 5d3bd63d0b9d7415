import type { InputError } from '../../base/errors.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import type { KeyReport } from '../../base/telemetry/status.ts'
import type { KeySource } from '../../signing/zone-keys.ts'

/** Receives what works, but probably not as intended. */
export type KeyWarning = (warning: InputError) => void

/** The keys of a directive, from their place. Each kind of place has one implementation. */
export interface ServedKeys extends KeySource {
  /** The zone needs keys; those of `keys` are made if it has none. */
  manage(zone: Uint8Array): void
  /** Loads the keys. Rejects with InputError if a zone could not be signed. */
  start(warn: KeyWarning): void | Promise<void>
  stop(): void | Promise<void>
  /** What is wrong now. */
  problems?(): readonly ProblemGroup[]
  /** The keys and what becomes of them, for the status. */
  reports(): readonly KeyReport[]
  /** The next step of each zone, for the ready page. */
  note?(): string
  /** Why the server is not ready: keys are missing since the start; '' = none are. */
  unreadyReason?(): string
  /**
   * For `sextant check`: reads the keys, and changes nothing. Resolves to their number; undefined = they can't be read
   * here. Rejects with InputError.
   */
  check(warn: KeyWarning, isOffline: boolean): number | Promise<number | undefined>
  /** After `check`: ids of the keys without a private one, which other providers sign with (RFC 8901). */
  publicOnly?(): readonly string[]
  /** After `check`: the DNSKEYs of a zone; none = they are not known. */
  checkedKeys(zone: Uint8Array): readonly Uint8Array[]
}
