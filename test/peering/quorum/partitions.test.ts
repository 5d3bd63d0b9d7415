import t, { type Test } from 'tap'
import { addressOf, HOLD_DOWN_S, POLL_S_MAX, PROBE_S, SimulatedSites } from './simulated-sites.ts'

/** Probes and polls have found everything. */
const SETTLE_S = 60
/** From the end of a partition to the same answers: a poll, and the check after it. */
const HEALED_S = POLL_S_MAX + 1
/** Until the probes of all sites find an address down. */
const DETECTED_S = 4 * PROBE_S

interface Script {
  readonly name: string
  readonly sites: number
  readonly cut: (network: SimulatedSites) => void
  /** Sites that still hear a majority, and addresses that these take out after the hold-down. */
  readonly majority: readonly number[]
  readonly takenOut: readonly number[]
}

const SCRIPTS: readonly Script[] = [
  {
    name: 'one site of three is cut',
    sites: 3,
    cut: (network) => network.setSite(2, false),
    majority: [0, 1],
    takenOut: [2],
  },
  {
    name: 'two sites of five are cut',
    sites: 5,
    cut: (network) => {
      network.setSite(3, false)
      network.setSite(4, false)
    },
    majority: [0, 1, 2],
    takenOut: [3, 4],
  },
  {
    name: 'two sites of three are cut',
    sites: 3,
    cut: (network) => {
      network.setSite(1, false)
      network.setSite(2, false)
    },
    majority: [],
    takenOut: [],
  },
  {
    name: 'all sites are cut',
    sites: 5,
    cut: (network) => {
      for (const number of network.numbers) network.setSite(number, false)
    },
    majority: [],
    takenOut: [],
  },
  {
    name: 'one of two sites is cut',
    sites: 2,
    cut: (network) => network.setSite(1, false),
    majority: [],
    takenOut: [],
  },
  {
    name: 'one direction between two sites is lost',
    sites: 3,
    cut: (network) => network.setLink(0, 2, false),
    majority: [0, 1, 2],
    takenOut: [],
  },
  {
    name: 'all requests to one site are lost, while its own requests pass',
    sites: 3,
    cut: (network) => {
      network.setLink(0, 2, false)
      network.setLink(1, 2, false)
    },
    majority: [0, 1],
    takenOut: [2],
  },
  {
    name: 'no other site reaches the gateway of a site that is heard',
    sites: 3,
    cut: (network) => {
      network.setLink(0, 2, false, 'probes')
      network.setLink(1, 2, false, 'probes')
    },
    majority: [0, 1, 2],
    takenOut: [],
  },
]

function all(network: SimulatedSites): readonly string[] {
  return network.numbers.map(addressOf)
}

function sameEverywhere(
  t: Test,
  network: SimulatedSites,
  want: readonly string[],
  what: string,
): void {
  const got = network.sites.map((site) => [...site.answers].sort())
  t.strictSame(
    got,
    network.sites.map(() => want),
    `${what}\n${network.log.join('\n')}`,
  )
}

for (const { name, sites, cut, majority, takenOut } of SCRIPTS) {
  t.test(`${name}, for less than the hold-down`, async (t) => {
    const network = new SimulatedSites(sites, 1)
    network.run(SETTLE_S)
    cut(network)
    let changes = 0
    network.run(HOLD_DOWN_S - 1, () => {
      for (const site of network.sites) if (site.answers.length !== sites) changes++
    })
    network.heal()
    network.run(SETTLE_S, () => {
      for (const site of network.sites) if (site.answers.length !== sites) changes++
    })
    t.equal(changes, 0, 'no site takes out an address')
  })

  t.test(`${name}, for ten minutes`, async (t) => {
    const network = new SimulatedSites(sites, 2)
    network.run(SETTLE_S)
    cut(network)
    network.run(HOLD_DOWN_S + DETECTED_S + POLL_S_MAX)
    const addresses = all(network)
    const left = addresses.filter((address) => !takenOut.map(addressOf).includes(address))
    const check = (): void => {
      for (const site of network.sites) {
        const want = majority.includes(site.number) ? left : addresses
        if ([...site.answers].sort().join() !== want.join())
          t.fail(`${site.name} at ${network.nowS} s: ${site.answers}\n${network.log.join('\n')}`)
      }
    }
    network.run(600, check)
    network.heal()
    network.run(HEALED_S)
    sameEverywhere(t, network, addresses, 'after the partition')
    network.run(200, () => sameEverywhere(t, network, addresses, 'and later'))
  })
}

t.test('a link that fails again and again takes nothing out', async (t) => {
  const network = new SimulatedSites(3, 3)
  network.run(SETTLE_S)
  let changes = 0
  for (let i = 0; i < 20; i++) {
    network.setSite(2, false)
    network.run(HOLD_DOWN_S - POLL_S_MAX - 1, () => {
      for (const site of network.sites) if (site.answers.length !== 3) changes++
    })
    network.heal()
    network.run(HEALED_S)
  }
  t.equal(changes, 0)
})

t.test('a dead site is taken out at all others, also at one that was cut meanwhile', async (t) => {
  const network = new SimulatedSites(5, 4)
  network.run(SETTLE_S)
  network.setSite(1, false)
  network.sites[4]!.isUp = false
  network.sites[4]!.isGatewayUp = false
  network.run(HOLD_DOWN_S + DETECTED_S + POLL_S_MAX)
  const isolated = network.sites[1]!
  t.equal(isolated.answers.length, 5, 'an isolated site changes nothing')
  t.equal(isolated.quorum.status.isIsolated, true)
  t.match(network.log.join('\n'), /site1: .*site is isolated: 1 of 5 sites heard, 3 needed/)
  network.heal()
  network.run(HEALED_S)
  for (const site of network.sites.slice(0, 4)) {
    t.strictSame([...site.answers].sort(), all(network).slice(0, 4), site.name)
  }
  network.sites[4]!.start()
  network.sites[4]!.isGatewayUp = true
  network.run(HEALED_S + PROBE_S)
  sameEverywhere(t, network, all(network), 'the site is back')
})

t.test('a site that becomes isolated keeps what all agreed on', async (t) => {
  const network = new SimulatedSites(4, 5)
  network.run(SETTLE_S)
  network.sites[3]!.isUp = false
  network.sites[3]!.isGatewayUp = false
  network.run(HOLD_DOWN_S + DETECTED_S + POLL_S_MAX)
  for (const number of network.numbers) network.setSite(number, false)
  network.run(600, () => {
    for (const site of network.sites.slice(0, 3)) {
      const got = [...site.answers].sort()
      if (got.join() !== all(network).slice(0, 3).join()) t.fail(`${site.name}: ${got}`)
    }
  })
  for (const site of network.sites.slice(0, 3)) t.ok(site.quorum.status.isIsolated, site.name)
})

t.test('a gateway that one other site reaches stays, although its site is silent', async (t) => {
  const network = new SimulatedSites(5, 6)
  network.run(SETTLE_S)
  network.sites[4]!.isUp = false
  for (const from of [0, 1, 2]) network.setLink(from, 4, false)
  network.run(600, () => {
    for (const site of network.sites.slice(0, 4)) {
      if (site.answers.length !== 5) t.fail(`${site.name} at ${network.nowS} s: ${site.answers}`)
    }
  })
  t.equal(network.sites[0]!.quorum.status.disputed, 1)
})

t.test('a disputed address is taken out when its site becomes silent', async (t) => {
  const network = new SimulatedSites(3, 7)
  network.run(SETTLE_S)
  network.setLink(0, 2, false, 'probes')
  network.setLink(1, 2, false, 'probes')
  network.run(300)
  sameEverywhere(t, network, all(network), 'disputed')
  network.sites[2]!.isUp = false
  network.run(HOLD_DOWN_S - 1)
  t.equal(network.sites[0]!.answers.length, 3, 'within the hold-down')
  network.run(3)
  for (const site of network.sites.slice(0, 2)) {
    t.strictSame([...site.answers].sort(), all(network).slice(0, 2), site.name)
  }
})

for (const [what, skewS] of [
  ['ahead', 3600],
  ['behind', -3600],
] as const) {
  t.test(`a site whose clock is an hour ${what} causes no wrong failover`, async (t) => {
    const network = new SimulatedSites(3, 8, [0, skewS, 0])
    network.run(SETTLE_S)
    network.setSite(2, false)
    network.run(HOLD_DOWN_S - 1, () => {
      for (const site of network.sites) if (site.answers.length !== 3) t.fail(`${site.name}`)
    })
    network.heal()
    network.run(HEALED_S)
    sameEverywhere(t, network, all(network), 'after the partition')
    t.match(network.log.join(), /its clock is 3\d+ s ahead of ours/, 'the later clock is logged')
  })
}
