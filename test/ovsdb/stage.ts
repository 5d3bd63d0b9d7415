import type { Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { systemTimers } from '../../src/base/timers.ts'
import { OvsdbClient, type OvsdbClientOptions } from '../../src/ovsdb/client.ts'
import type { OvsdbRow } from '../../src/ovsdb/datum.ts'
import { scanRemotes } from '../../src/ovsdb/remote.ts'

export const COLUMNS = { name: 'atom', addresses: 'set', external_ids: 'map' } as const

/** A client of OVN_Northbound that follows the address sets with `owner=me`. */
export class ClientStage {
  readonly client: OvsdbClient
  readonly lines: string[] = []
  /** `NAME: BEFORE -> AFTER` for each changed row. */
  readonly changes: string[] = []
  syncs = 0

  constructor(t: Test, remotes: string, options: Partial<OvsdbClientOptions> = {}) {
    this.client = new OvsdbClient({
      remotes: scanRemotes(remotes)!,
      tls: undefined,
      database: 'OVN_Northbound',
      monitored: {
        table: 'Address_Set',
        columns: COLUMNS,
        where: [['external_ids', 'includes', ['map', [['owner', 'me']]]]],
      },
      clock: systemClock,
      timers: systemTimers,
      random: new Random(1),
      log: createLogger(
        '',
        (line) => this.lines.push(line),
        () => true,
      ),
      onRow: (before, after) => {
        const name = String((after ?? before)?.name)
        this.changes.push(`${name}: ${addressesOf(before)} -> ${addressesOf(after)}`)
      },
      onSync: () => void this.syncs++,
      ...options,
    })
    t.teardown(() => this.client.close())
    this.client.start()
  }

  /** `NAME: ADDRESSES` of each known row. */
  rows(): string[] {
    return [...this.client.rows].map((row) => `${row.name}: ${addressesOf(row)}`).sort()
  }
}

function addressesOf(row: OvsdbRow | undefined): string {
  if (row === undefined) return 'none'
  return row.addresses instanceof Set ? [...row.addresses].sort().join(' ') : '?'
}

/** Operations that tests use. */
export function insert(name: string, addresses: readonly string[], owner = 'me'): object {
  const external_ids = ['map', [['owner', owner]]]
  const row = { name, addresses: ['set', addresses], external_ids }
  return { op: 'insert', table: 'Address_Set', row }
}

export function update(name: string, addresses: readonly string[]): object {
  const where = [['name', '==', name]]
  return { op: 'update', table: 'Address_Set', where, row: { addresses: ['set', addresses] } }
}

export function remove(name: string): object {
  return { op: 'delete', table: 'Address_Set', where: [['name', '==', name]] }
}
