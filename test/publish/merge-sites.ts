import { UNKNOWN_HEALTH } from '../../src/health/address-health.ts'
import { LocalExporter } from '../../src/peering/local-exporter.ts'
import { MergedSource } from '../../src/peering/merged-source.ts'
import { PeerFollower } from '../../src/peering/peer.ts'
import type { SiteState } from '../../src/peering/peer-endpoint.ts'
import { HealthQuorum } from '../../src/peering/quorum/health-quorum.ts'
import { QuorumMemory } from '../../src/peering/quorum/quorum-memory.ts'
import { readV2Host } from '../../src/peering/read-v2.ts'
import { unpackRecord } from '../../src/records/pack.ts'
import type { RecordSource, StoredRecord } from '../../src/records/record-source.ts'
import { recordLog } from '../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { TestHealth } from '../support/test-health.ts'

const CLOCK = new FakeClock()
const { log } = recordLog()
const COMMON = { clock: CLOCK, timers: new FakeTimers(), log }

/** A nameserver of another site that was just heard. */
class SitePeer extends PeerFollower {
  readonly #states: readonly SiteState[]

  constructor(states: readonly SiteState[]) {
    super({ peer: { host: '127.0.0.1', port: 53 }, ...COMMON, random: () => 0 })
    this.#states = states
  }

  override get lastSeenMs(): number {
    return CLOCK.monotonic()
  }

  override hosts(): ReadonlySet<string> {
    return new Set(this.#states.map(({ rootHost }) => rootHost))
  }

  override siteStatesOf(): readonly SiteState[] {
    return this.#states
  }
}

/** Returns what a nameserver of `site` reads of one host: its own records, and what the other sites export of theirs. */
export async function mergeSites(
  site: string,
  host: string,
  bySite: ReadonlyMap<string, readonly StoredRecord[]>,
): Promise<readonly StoredRecord[]> {
  const peers = [...bySite]
    .filter(([other]) => other !== site)
    .map(([other, records]) => new SitePeer(exportHost(other, host, records)))
  const health = new TestHealth()
  const memory = new QuorumMemory(CLOCK)
  const rules = { quorum: 0, holdDownMs: 0, memory, observer: undefined }
  const quorum = new HealthQuorum({ site, peers, ...rules, ...COMMON })
  const own = sourceOf(bySite.get(site) ?? [])
  const exporter = new LocalExporter(site, CLOCK)
  const parts = { own, health, allows: () => true, exporter, expiryMs: 60_000, quorum }
  const source = new MergedSource({ site, peers, ...parts, ...COMMON })
  await source.ready()
  const records = [...source.records()]
  source.close()
  return records
}

function exportHost(site: string, host: string, records: readonly StoredRecord[]) {
  const exporter = new LocalExporter(site, CLOCK)
  const rdata = records.flatMap((record) => {
    const state = { record, health: UNKNOWN_HEALTH }
    return exporter.composeRdata(state, unpackRecord(record.packed), undefined)
  })
  const seenMs = CLOCK.monotonic()
  const { siteStates, problems } = readV2Host(rdata, { host, seenMs, exporter: site })
  if (problems.length > 0) throw new Error(problems.join('; '))
  return siteStates
}

function sourceOf(records: readonly StoredRecord[]): RecordSource {
  return {
    records: () => records,
    find: (key) => records.find((one) => one.key === key),
    recordCount: records.length,
    problems: () => [],
    unreadyReason: () => '',
    subscribe: () => () => {},
  }
}
