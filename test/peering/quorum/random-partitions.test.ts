import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { CLOSED } from '../../../src/steering/rules.ts'
import { addressOf, type Family, isIpv6, siteOf } from './simulated-addresses.ts'
import { boundsOf, type CheckTimes } from './simulated-probes.ts'
import { type SimulatedSite, SimulatedSites } from './simulated-sites.ts'

// Long: hours of simulated time for each schedule.

/** Set QUORUM_SEEDS to try more schedules. */
const SEEDS = Number(process.env.QUORUM_SEEDS ?? 15)
/** Faults in a row, and then a time without faults, in each schedule. */
const ROUNDS = 8

/** Time after a start in which other sites are not heard yet: what was down before stays out. */
const START_S = 9

/** Breaks or mends something. Returns a site that was started again with the endpoints of peers, if one was. */
function disturb(network: SimulatedSites, random: Random): Restart | undefined {
  const { numbers, sites, generations } = network
  const ids = sites.flatMap((one) => one.ids)
  const id = ids[random.below(ids.length)]!
  const pick = (): number => random.below(numbers.length)
  const [one, other] = [pick(), pick()]
  const isUp = random.below(2) === 0
  const kinds = ['both', 'queries', 'probes'] as const
  switch (random.below(14)) {
    case 0:
      network.setSite(one, isUp)
      return undefined
    case 1:
    case 2:
      network.setLink(one, other, isUp, kinds[random.below(3)]!)
      return undefined
    case 3:
      network.setPair(one, other, isUp)
      return undefined
    case 4:
      network.heal()
      return undefined
    case 5:
      for (const number of numbers) network.setSite(number, false)
      return undefined
    case 6:
    case 7:
      sites[one]!.isGatewayUp = isUp
      return undefined
    case 8:
    case 9:
      if (isUp) network.deaf.delete(id)
      else network.deaf.add(id)
      return undefined
    case 10:
      // A v1 peer is another program.
      if (generations[siteOf(id)] === 'v2') sites[siteOf(id)]!.drain(id, !isUp)
      return undefined
    case 11:
      leaveOne(network, id, one)
      return undefined
    default:
      if (!isUp) sites[one]!.isUp = false
      else if (!sites[one]!.isUp || generations[one] === 'v2') {
        const endpoints = random.below(2) === 0
        const before = endpoints && generations[one] === 'v2' ? [...sites[one]!.out] : []
        sites[one]!.start({ findings: random.below(2) === 0, endpoints })
        return { site: sites[one]!, out: new Set(before), untilS: network.nowS + START_S }
      }
      return undefined
  }
}

/** A site that started again, and the addresses that were out before. */
interface Restart {
  readonly site: SimulatedSite
  readonly out: Set<number>
  readonly untilS: number
}

/** Returns which address that was out, and is still dead, is served after a restart beside one that works; '' = none. */
function servedAgain(network: SimulatedSites, { site, out, untilS }: Restart): string {
  if (!site.isUp || network.nowS > untilS) out.clear()
  for (const id of out) {
    if (network.isLive(id) || site.foundOf(id) === 'up') out.delete(id)
    const answers = isIpv6(id) ? site.answers6 : site.answers
    if (!out.has(id) || !answers.includes(addressOf(id))) continue
    const others = site.ids.filter(
      (own) => isIpv6(own) === isIpv6(id) && site.foundOf(own) === 'up',
    )
    const isElsewhere = others.some((own) => !site.isDrained(own))
    if (isElsewhere) return `${site.name} serves ${addressOf(id)} again after a restart`
  }
  return ''
}

/** Leaves one address of a type that works. Only its own site and one other reach it. */
function leaveOne(network: SimulatedSites, id: number, observer: number): void {
  const home = siteOf(id)
  network.heal()
  for (const other of network.sites.flatMap(({ ids }) => ids)) {
    if (isIpv6(other) === isIpv6(id) && other !== id) network.deaf.add(other)
  }
  for (const number of network.numbers) network.setLink(number, home, number === observer, 'probes')
}

/** What the schedules showed. */
interface Figures {
  answers: number
  /** Addresses that were left out at the end of a round. */
  leftOut: number
  /** Addresses that a site served against most sites. */
  kept: number
  /** Pairs of sites that were compared. */
  pairs: number
  /** Answers of sites without a record of the host. */
  followed: number
  /** Addresses that were out before a restart, times seconds after it. */
  restarts: number
}

/** The answers of one type. */
interface Answers {
  /** Addresses that a site serves although most sites find them down. */
  readonly kept: (site: SimulatedSite) => readonly string[]
  /** Addresses of this type that sites have. */
  readonly ids: readonly number[]
  readonly of: (site: SimulatedSite) => readonly string[]
}

function answersOf({ sites }: SimulatedSites, family: Family): Answers {
  const keptBy = new Map(sites.map((site) => [site, site.kept]))
  const of = (site: SimulatedSite): readonly string[] => {
    return family === 4 ? site.answers : site.answers6
  }
  const ids = sites.flatMap((one) => one.ids)
  return {
    ids: ids.filter((id) => isIpv6(id) === (family === 6)),
    of,
    kept: (site) => keptBy.get(site)!,
  }
}

/** Returns why the answers of a site are wrong after a time without faults; '' = they are right. */
function faultOf(
  network: SimulatedSites,
  site: SimulatedSite,
  { ids, of, kept: keptOf }: Answers,
  isClosed: boolean,
): string {
  const { sites } = network
  const { number } = site
  const answers = of(site)
  const known = ids.filter((id) => site.knows(id))
  if (answers.length === 0 && known.length > 0 && !isClosed)
    return 'failures and drains emptied the answer'
  const isServed = (id: number): boolean => answers.includes(addressOf(id))
  const reached = known.filter((id) => {
    return !site.isDrained(id) && site.foundOf(id) === 'up' && network.reaches(number, id)
  })
  const dead = known.filter((id) => isServed(id) && !network.isLive(id))
  // With an endpoint that it reaches, a server gives no dead one.
  if (reached.length > 0 && dead.length > 0) return `serves the dead ${dead.map(addressOf)}`
  // Where one is served against most sites, there is no other one. A drain takes it out in any case.
  const kept = known.filter((id) => {
    return isServed(id) && !site.isDrained(id) && keptOf(site).includes(addressOf(id))
  })
  if (kept.length > 0 && kept.length < answers.length)
    return `serves ${kept.map(addressOf)} beside others`
  // An address that it and all sites that it hears reach is served, also that of a silent site.
  const heard = sites.filter((one) => one === site || (one.isUp && site.heard(one.number)))
  const left = reached.find((id) => {
    return !isServed(id) && heard.every((one) => network.reaches(one.number, id))
  })
  return left === undefined ? '' : `leaves out ${addressOf(left)}, which all reach`
}

/**
 * Returns which dead address a site serves that has no record of the host; '' = none. It follows the site of the
 * address, or if that one is silent, the sites that probe the address.
 */
function followedFault(network: SimulatedSites, site: SimulatedSite, { ids, of }: Answers): string {
  const heard = network.sites.filter((one) => one !== site && one.isUp && site.heard(one.number))
  const findings = (id: number): string[] => {
    return heard.flatMap((one) => (isOld(network, one) ? [] : one.foundOf(id) || []))
  }
  const isFoundUp = (id: number): boolean => {
    const found = findings(id)
    return found.length > 0 && found.every((health) => health === 'up')
  }
  const isElsewhere = ids.some((id) => {
    return site.knows(id) && !site.isDrained(id) && network.isLive(id) && isFoundUp(id)
  })
  const dead = ids.find((id) => {
    const home = network.sites[siteOf(id)]!
    if (network.isLive(id) || !of(site).includes(addressOf(id))) return false
    if (heard.includes(home)) return !isOld(network, home)
    // With two sites, the last report of the other one stays in force.
    return network.numbers.length > 2 && findings(id).includes('down')
  })
  return dead === undefined || !isElsewhere ? '' : `serves the dead ${addressOf(dead)}`
}

function isOld({ generations }: SimulatedSites, { number }: SimulatedSite): boolean {
  return generations[number] === 'v1'
}

/** Returns about which address two sites that hear the same sites differ, although neither of them has it; '' = none. */
function differenceOf(
  network: SimulatedSites,
  one: SimulatedSite,
  other: SimulatedSite,
  { ids, of, kept }: Answers,
): string {
  const hears = (site: SimulatedSite): string => {
    return network.numbers.filter((n) => n === site.number || site.heard(n)).join()
  }
  if (hears(one) !== hears(other)) return ''
  // A site that was restarted without stored data does not know the endpoints of a silent one.
  const isForeign = (id: number): boolean => {
    if (one.ids.includes(id) || other.ids.includes(id)) return false
    if (one.isDrained(id) !== other.isDrained(id)) return false
    // Findings and endpoints are stored apart, so one can be there without the other.
    return [one, other].every((site) => site.knows(id) && site.foundOf(id) !== '')
  }
  const serves = (site: SimulatedSite, id: number): boolean => {
    return of(site).includes(addressOf(id))
  }
  // Where all that a server knows is out, it serves what it reaches, or all. Then it serves one that is out.
  const isAllOut = [one, other].some((site) => {
    const served = ids.filter((id) => serves(site, id))
    const isKept = (id: number): boolean => kept(site).includes(addressOf(id))
    const isOut = (id: number): boolean => !network.isLive(id) || site.isDrained(id) || isKept(id)
    return served.length === 0 || served.some(isOut)
  })
  const found = ids.find((id) => isForeign(id) && serves(one, id) !== serves(other, id))
  if (found === undefined || isAllOut) return ''
  return `${one.name} and ${other.name} differ about ${addressOf(found)}`
}

function runSchedule(seed: number, figures: Figures): string {
  const random = new Random(seed)
  const count = 2 + random.below(6)
  const drawTimes = (): CheckTimes => ({
    probeS: [2, 5, 10][random.below(3)]!,
    failures: 1 + random.below(4),
    successes: 1 + random.below(2),
  })
  const times = drawTimes()
  const siteTimes = random.below(3) === 0 ? Array.from({ length: count }, drawTimes) : []
  const isOld = count > 2 ? random.below(3) === 0 : random.below(4) === 0
  const generations = Array.from({ length: count }, (_, i) => {
    return isOld && i === count - 1 ? ('v1' as const) : ('v2' as const)
  })
  const isClosed = random.below(4) === 0
  const settings = { allDown: isClosed ? CLOSED : 'open', sticky: undefined }
  const weight = random.below(2) === 0 ? 100 : undefined
  const shapes: readonly (readonly Family[])[] = [[4], [4], [4, 6], [6]]
  const families = generations.map((one, number) => {
    // The first site has addresses in any case.
    const hasNone = one === 'v2' && number > 0 && random.below(6) === 0
    if (hasNone) return []
    return one === 'v1' ? [4] : shapes[random.below(4)]!
  }) as (readonly Family[])[]
  const lateS = generations.map(() => (random.below(4) === 0 ? 1 + random.below(3) : 0))
  const how = { seed, generations, times, siteTimes, weight, settings, families, lateS }
  const network = new SimulatedSites(how)
  const bounds = generations.map((_, number) => boundsOf(network.timesOf(number)))
  const [downS, upS] = [bounds.map((one) => one.downS), bounds.map((one) => one.upS)].map((all) => {
    return Math.max(...all)
  }) as [number, number]
  const ours = network.sites.filter(({ number }) => generations[number] === 'v2')
  let fault = ''
  const restarts: Restart[] = []
  const check = (): void => {
    for (const one of restarts.splice(0)) {
      figures.restarts += one.out.size
      const again = servedAgain(network, one)
      if (again !== '') fault ||= `${again} at ${network.nowS} s`
      if (one.out.size > 0) restarts.push(one)
    }
  }
  network.run(upS + downS)
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = random.below(4); i >= 0; i--) {
      const restart = disturb(network, random)
      if (restart !== undefined) restarts.push(restart)
      network.run(random.below(2) === 0 ? random.below(5) : random.below(2 * downS), check)
    }
    network.run(Math.max(downS, upS), check)
    const types = ([4, 6] as const).map((family) => answersOf(network, family))
    for (const site of ours.filter(({ isUp }) => isUp)) {
      for (const type of types) {
        figures.answers++
        const wrong = faultOf(network, site, type, isClosed)
        figures.followed += site.ids.length === 0 ? 1 : 0
        const followed = site.ids.length === 0 ? followedFault(network, site, type) : ''
        if (followed !== '') fault ||= `${site.name} ${followed} at ${network.nowS} s`
        if (wrong !== '') fault ||= `${site.name} ${wrong} at ${network.nowS} s`
        if (type.of(site).length < type.ids.length) figures.leftOut++
        figures.kept += type.kept(site).length
        for (const other of ours.filter((one) => one.isUp && one.number > site.number)) {
          const difference = differenceOf(network, site, other, type)
          if (difference !== '') fault ||= `${difference} at ${network.nowS} s`
          figures.pairs++
        }
      }
    }
    if (fault !== '') break
  }
  const setting = JSON.stringify({
    times,
    siteTimes,
    generations,
    isClosed,
    weight,
    families,
    lateS,
  })
  return fault === '' ? '' : `seed ${seed}: ${fault}\n${setting}\n${network.log.join('\n')}`
}

t.test('random sites, partitions, deaths and restarts', async (t) => {
  const figures: Figures = { answers: 0, leftOut: 0, kept: 0, pairs: 0, restarts: 0, followed: 0 }
  const faults: string[] = []
  for (let seed = 1; seed <= SEEDS; seed++) {
    const fault = runSchedule(seed, figures)
    if (fault !== '') faults.push(fault)
    if (fault !== '') console.error(fault)
  }
  t.equal(faults.length, 0, faults[0] ?? 'no fault')
  const { answers, leftOut, kept, pairs, restarts, followed } = figures
  t.comment(
    `${SEEDS} schedules, ${answers} answers, ${leftOut} with an address less, ${kept} kept, ${pairs} pairs, ${restarts} addresses out after restarts, ${followed} answers without a record`,
  )
  t.ok(leftOut > 0 && leftOut < answers && kept > 0 && pairs > 0)
  t.ok(restarts > 0 && followed > 0)
})
