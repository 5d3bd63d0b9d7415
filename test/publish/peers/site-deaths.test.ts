import t, { type Test } from 'tap'
import type { DeathRules, HostOfSites } from '../../../src/peering/deaths/if-site-dies.ts'
import { DeathMemory, SiteDeathLog } from '../../../src/publish/peers/site-deaths.ts'
import { endpoint } from '../../support/peer-text.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock } from '../../support/setup.ts'

const RULES: Omit<DeathRules, 'knowsOthers'> = {
  site: 'berlin',
  sites: 2,
  silentMs: 24 * 3600_000,
  unprobed: '',
  quorum: 0,
  holdDownMs: 0,
  policy: { refusal: () => '' },
  commands: new Set(),
  allDown: 'open',
}
const CHECK = { protocol: 'TCP', intervalMs: 5000, failureThreshold: 4 } as const

/** A host that berlin and another site have. */
function hostOf(name: string, other: string, isChecked = true): HostOfSites {
  const host = `${name}.example.com`
  const at = (site: string, target: string) => {
    return endpoint({ site, rootHost: host, dnsName: host, targets: [target] })
  }
  const endpoints = [at('berlin', '192.0.2.1'), at(other, '198.51.100.1')]
  return { host, endpoints, check: isChecked ? CHECK : undefined, allDown: undefined }
}

class Peer {
  readonly address = '192.0.2.53:53'
  ownSite = ''
  lastSeenMs = Number.NEGATIVE_INFINITY
  #listener = (): void => {}

  subscribe(listener: () => void): () => void {
    this.#listener = listener
    return () => {}
  }

  hear(site: string): void {
    this.ownSite = site
    this.lastSeenMs = 0
    this.#listener()
  }
}

/** Lines of the log of one configuration; another one with the same memory is a reload. */
class Stage {
  readonly #memory = new DeathMemory()
  readonly peer = new Peer()
  hosts: readonly HostOfSites[] = []
  rules = RULES
  readonly #recorded = recordLog()
  #deaths: SiteDeathLog | undefined

  async load(t: Test): Promise<readonly string[]> {
    this.#deaths?.close()
    this.#deaths = new SiteDeathLog({
      peers: [this.peer],
      hosts: () => this.hosts,
      ready: async () => {},
      rules: () => this.rules,
      memory: this.#memory,
      clock: new FakeClock(),
      log: this.#recorded.log,
    })
    t.teardown(() => this.#deaths?.close())
    return this.lines()
  }

  async lines(): Promise<readonly string[]> {
    await this.#deaths?.settled()
    return this.#recorded.lines.splice(0)
  }
}

const removed = (site: string, name: string): string =>
  `[INFO] if ${site} dies: ${name}.example.com: 1 of 2 addresses is removed within 40 s`

t.test('nothing is logged before a peer is heard, and each line once', async (t) => {
  const stage = new Stage()
  stage.hosts = [hostOf('app', 'paris')]
  t.strictSame(await stage.load(t), [], 'no site is known')
  stage.peer.hear('paris')
  t.strictSame(await stage.lines(), [removed('berlin', 'app'), removed('paris', 'app')])
  stage.peer.hear('paris')
  t.strictSame(await stage.lines(), [], 'the site is known')
  t.strictSame(await stage.load(t), [], 'a reload without changes')
  stage.hosts = [hostOf('app', 'paris'), hostOf('www', 'paris', false)]
  const kept = '192.0.2.1 is kept for 24 h: no health check'
  const theirs = '198.51.100.1 is kept for 24 h: no health check'
  t.strictSame(await stage.load(t), [
    `[INFO] if berlin dies: www.example.com: ${kept}`,
    `[INFO] if paris dies: www.example.com: ${theirs}`,
  ])
})

t.test('traffic that a setting keeps is a warning', async (t) => {
  const stage = new Stage()
  stage.peer.hear('paris')
  stage.hosts = [hostOf('app', 'paris')]
  stage.rules = { ...RULES, unprobed: 'probe-peers is off' }
  t.match(await stage.load(t), [
    /^\[WARNING\] if berlin dies: app\.example\.com: .*probe-peers is off$/,
    /^\[WARNING\] if paris dies: .*probe-peers is off$/,
  ])
})

t.test('a report is bounded, and a reload does not log the rest', async (t) => {
  const stage = new Stage()
  stage.peer.hear('paris')
  stage.hosts = Array.from({ length: 600 }, (_, i) => hostOf(`h${i}`, 'paris'))
  const lines = await stage.load(t)
  t.equal(lines.length, 21)
  t.equal(lines.at(-1), '[INFO] and 1180 more lines about the death of sites')
  t.strictSame(await stage.load(t), [])
})
