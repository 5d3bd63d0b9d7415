import fc from 'fast-check'
import t from 'tap'
import { HEARD_MS } from '../../../src/peering/quorum/heard-sites.ts'
import { boundsOf, type CheckTimes } from '../../peering/quorum/simulated-probes.ts'
import { address, HOST } from '../../support/delegation-fixture.ts'
import { DelegationSimulation, type SimulatedSite } from '../delegation-simulation.ts'

// Long: it simulates random clusters for hours.

/** Set CLUSTER_RUNS to try more schedules. */
const RUNS = Number(process.env.CLUSTER_RUNS ?? 8)
const TIMES: CheckTimes = { probeS: 1, failures: 1, successes: 1 }
const { downS, upS } = boundsOf(TIMES)
const healthCheck = {
  ...{ protocol: 'TCP', port: 443, interval: `${TIMES.probeS}s` },
  ...{ failureThreshold: TIMES.failures, successThreshold: TIMES.successes },
}
const SILENT_S = 12
/** An API server is asked every 3 s, and operators act within a second. */
const ASK_S = 4
/** A leader that begins before a cluster counts as silent assumes that this cluster was heard just now. */
const STORED_S = HEARD_MS / 1000 + 1
/** Silence removes nothing while a leader begins. */
const BEGIN_S = 11
/** Longest time without an operator, which is shorter than BEGIN_S. */
const DOWN_S = 9
/** Without a health check. Another leader may begin before the silence is stored, and one just before it is over. */
const UNCHECKED = { upS: ASK_S, downS: SILENT_S + STORED_S + 2 * DOWN_S + BEGIN_S + ASK_S }
const NAMES = ['dublin', 'boston', 'chicago', 'denver']

/** A change of one cluster, and the seconds that pass then. Leaders change at most every BEGIN_S. */
interface Step {
  readonly kind: 'API server' | 'application' | 'leader'
  readonly site: number
  readonly seconds: number
  /** Until the next leader runs. */
  readonly downS: number
  /** True: meanwhile the API server of the next cluster dies or returns. */
  readonly isNextChanging: boolean
}

interface Schedule {
  /** True for each cluster that is a primary. The first one is. */
  readonly primaries: readonly boolean[]
  /** Those of the clusters whose records have a health check. */
  readonly checked: readonly number[]
  readonly steps: readonly Step[]
}

const schedules: fc.Arbitrary<Schedule> = fc.record({
  primaries: fc
    .array(fc.boolean(), { minLength: 1, maxLength: NAMES.length - 1 })
    .map((others) => [true, ...others]),
  checked: fc.subarray([0, 1, 2, 3], { maxLength: 2 }),
  steps: fc.array(
    fc.record({
      kind: fc.constantFrom('API server', 'application', 'leader'),
      site: fc.nat(NAMES.length - 1),
      seconds: fc.integer({ min: BEGIN_S, max: 27 }),
      downS: fc.integer({ min: 0, max: DOWN_S }),
      isNextChanging: fc.boolean(),
    }),
    { minLength: 3, maxLength: 5 },
  ),
})

/** A cluster, and the times, in seconds, of its last changes that other clusters can see. */
interface Member {
  readonly site: SimulatedSite
  readonly address: string
  readonly hasCheck: boolean
  isAlive: boolean
  /** Its API server died or returned. */
  apiS: number
  /** Its application died or returned. */
  applicationS: number
  /** Its operator started. */
  startS: number
  /** Its operator read a health check; Infinity = none since its start. */
  knownS: number
}

class Clusters {
  readonly members: readonly Member[]
  readonly #simulation: DelegationSimulation
  readonly faults: string[] = []
  /** Number of checks of addresses that must be served, and of addresses that must not be served. */
  readonly checked = { served: 0, removed: 0 }
  /** Pairs of clusters, each with the time of a change of the other one, for which the bounds have passed once. */
  readonly #settled = new Set<string>()
  #nowS = 0

  /** Addresses that a primary served at the last check, each after that of the primary. */
  readonly #served = new Set<string>()

  constructor({ primaries, checked }: Schedule) {
    const isAlive = (one: string): boolean =>
      this.members.some((m) => m.address === one && m.isAlive)
    this.#simulation = new DelegationSimulation(SILENT_S * 1000, (_, target) => isAlive(target))
    this.members = primaries.map((isPrimary, i) => {
      const role = isPrimary ? 'primary' : 'secondary'
      const site = this.#simulation.add(NAMES[i]!, role)
      const target = `198.51.100.${i + 1}`
      const hasCheck = checked.includes(i)
      site.delegate('app', [address(HOST, target)], hasCheck ? { healthCheck } : {})
      const times = { apiS: 0, applicationS: 0, startS: 0, knownS: Infinity }
      return { site, address: target, hasCheck, isAlive: true, ...times }
    })
  }

  async run(seconds: number): Promise<void> {
    await this.#simulation.pass(seconds, () => {
      this.#nowS++
      for (const primary of this.members) {
        const { role, isUp, hasOperator } = primary.site
        if (role === 'primary' && isUp && hasOperator) this.#check(primary)
      }
    })
  }

  async step({ kind, site, seconds, downS, isNextChanging }: Step): Promise<void> {
    const at = (index: number): Member => this.members[index % this.members.length]!
    const member = at(site)
    if (kind === 'API server') this.#changeApi(member)
    else if (kind === 'application') {
      member.isAlive = !member.isAlive
      member.applicationS = this.#nowS
    } else {
      member.site.hasOperator = false
      await this.run(downS >> 1)
      if (isNextChanging) this.#changeApi(at(site + 1))
      await this.run(downS - (downS >> 1))
      member.site.hasOperator = true
      this.#restart(member)
    }
    await this.run(seconds)
  }

  #changeApi(member: Member): void {
    member.site.isUp = !member.site.isUp
    member.apiS = this.#nowS
    this.#restart(member)
  }

  #restart(member: Member): void {
    if (!member.site.isUp) return
    member.site.restart()
    member.startS = this.#nowS
    member.knownS = Infinity
  }

  /** Notes the addresses that a primary serves, or does not serve, by mistake. */
  #check(primary: Member): void {
    const served = primary.site.served().join()
    const isRead = (one: Member): boolean => one.hasCheck && (one === primary || one.site.isUp)
    if (this.members.some(isRead)) primary.knownS = Math.min(primary.knownS, this.#nowS)
    for (const other of this.members) {
      const wanted = this.#wanted(primary, other)
      const pair = `${primary.address} ${other.address}`
      if (served.includes(other.address)) this.#served.add(pair)
      else this.#served.delete(pair)
      if (wanted === undefined) continue
      this.checked[wanted ? 'served' : 'removed']++
      if (served.includes(other.address) === wanted) continue
      const what = wanted ? 'lacks' : 'serves'
      this.faults.push(
        `${primary.site.name} ${what} ${other.address} of ${other.site.name} at ${this.#nowS} s`,
      )
    }
  }

  /** Whether a primary must serve the address of a cluster now; undefined = the bounds have not passed. */
  #wanted(primary: Member, other: Member): boolean | undefined {
    if (other === primary) return true
    const isChecked = this.members.some(({ hasCheck }) => hasCheck)
    const want = isChecked ? other.isAlive : other.site.isUp
    const changedS = isChecked ? other.applicationS : other.apiS
    const pair = `${primary.address} ${other.address}`
    // Probes begin again with each leader that knows the check. A primary without its API server stores no time. What is
    // served is not removed for a moment if its cluster returned before the leader began.
    const isKept = want && this.#served.has(pair)
    const beganS = isChecked ? primary.knownS : isKept ? 0 : primary.startS
    const bounds = isChecked ? { upS, downS } : UNCHECKED
    const sinceS = this.#nowS - Math.max(changedS, want || isChecked ? beganS : primary.apiS)
    const settled = `${pair} ${changedS}`
    if (sinceS > (want ? bounds.upS : bounds.downS)) this.#settled.add(settled)
    // The bounds passed once: the address must also be right while another leader begins.
    return this.#settled.has(settled) ? want : undefined
  }
}

t.test('random clusters whose API servers and applications die, and leaders change', async (t) => {
  const total = { served: 0, removed: 0 }
  const property = fc.asyncProperty(schedules, async (schedule) => {
    const clusters = new Clusters(schedule)
    await clusters.run(upS + 1)
    for (const step of schedule.steps) await clusters.step(step)
    await clusters.run(upS)
    total.served += clusters.checked.served
    total.removed += clusters.checked.removed
    if (clusters.faults.length > 0) throw new Error(clusters.faults.slice(0, 5).join('; '))
  })
  const once = { site: 1, seconds: 20, downS: 0, isNextChanging: false }
  const schedule = (checked: readonly number[], ...steps: readonly Partial<Step>[]): [Schedule] => {
    const whole = steps.map((step): Step => ({ ...once, kind: 'API server', ...step }))
    return [{ primaries: [true, false, false], checked, steps: whole }]
  }
  const examples = [
    schedule([0, 1], { kind: 'application', seconds: 27 }),
    schedule([], { seconds: 60 }),
    // Only the silent cluster has the check.
    schedule([1], {}, { kind: 'leader', site: 0 }),
    // The check of a cluster that is silent now found the address of another one down.
    schedule([2], { kind: 'application' }, { site: 2 }, { kind: 'leader', site: 0 }),
    // The silent cluster returns while no leader runs.
    schedule([], { seconds: 9 }, { kind: 'leader', site: 0, downS: 8, isNextChanging: true }),
  ]
  await fc.assert(property, { numRuns: RUNS, examples })
  t.comment(`${RUNS} schedules: ${total.served} times served, ${total.removed} times removed`)
  t.ok(total.served > 0 && total.removed > 0)
})
