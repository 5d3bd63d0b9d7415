import { join } from 'node:path'
import t, { type Test } from 'tap'
import { HostNetwork, type HostProcess, type NetworkHost } from '../support/host-network.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { layFiles, root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

// Long: it waits until sites are down and up again.

const SERVE = [process.execPath, join(root, 'dist/main.js'), 'serve']
const PORT = 1053
const ADMIN_PORT = 9154
const HOST = 'app.k.example.com'
const ADMIN = `@127.0.0.1:${ADMIN_PORT}`
const SITES = ['berlin', 'paris', 'rome'] as const
const HOLD_DOWN_S = 8
const SHORT_CUT_MS = 2000
/** Other tests run on the machine, too. */
const SEEN_MS = 120_000

type Name = (typeof SITES)[number]

const addressOf = (name: Name): string => `10.9.0.${SITES.indexOf(name) + 1}`
const ALL = SITES.map(addressOf)

function corefileOf(name: Name): string {
  const peers = SITES.filter((other) => other !== name).map(
    (other) => `${addressOf(other)}:${PORT}`,
  )
  return `kdrnt:${PORT} {
    transfer {
        to *
    }
    kuadrant {
        manifests zones
    }
}
k.example.com:${PORT} {
    admin 127.0.0.1:${ADMIN_PORT}
    kuadrant {
        manifests zones
        site ${name}
        peer ${peers.join(' ')}
        probe probes
        probe-allow 10.9.0.0/16
        hold-down ${HOLD_DOWN_S}s
    }
}
`
}

/** The gateway of a site is its name server: the probe opens a connection to its TCP port. */
function recordOf(name: Name): string {
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: app}
spec:
  rootHost: ${HOST}
  healthCheck: {protocol: TCP, port: ${PORT}, interval: 1s, failureThreshold: 1}
  endpoints:
  - {dnsName: ${HOST}, recordType: A, recordTTL: 5, targets: [${addressOf(name)}]}
`
}

/** A site on a host of its own. */
class CutSite {
  readonly name: Name
  readonly host: NetworkHost
  readonly process: HostProcess

  private constructor(name: Name, host: NetworkHost, process: HostProcess) {
    this.name = name
    this.host = host
    this.process = process
  }

  static async start(directory: string, network: HostNetwork, name: Name): Promise<CutSite> {
    const cwd = join(directory, name)
    layFiles(cwd, { Corefile: corefileOf(name), 'zones/app.yaml': recordOf(name) })
    const host = await network.addHost(name, [`${addressOf(name)}/24`])
    return new CutSite(name, host, host.start(SERVE, { cwd }))
  }

  /** Returns the addresses of one answer, sorted; from the host itself. */
  async answer(): Promise<readonly string[]> {
    const query = ['@127.0.0.1', '-p', String(PORT), HOST, 'A', '+short', '+time=2', '+tries=2']
    const printed = await this.host.run('dig', ...query)
    return printed
      .split('\n')
      .filter((line) => ALL.includes(line))
      .sort()
  }

  /** Returns what a command prints about the server. */
  ask(...argv: string[]): Promise<string> {
    return this.host.run(process.execPath, join(root, 'dist/main.js'), ...argv, ADMIN)
  }

  prints(text: RegExp): boolean {
    return text.test(this.process.output())
  }
}

async function startSites(t: Test): Promise<readonly [CutSite, CutSite, CutSite]> {
  const directory = temporaryDirectory(t)
  const network = await HostNetwork.create(t)
  const [berlin, paris, rome] = [
    await CutSite.start(directory, network, 'berlin'),
    await CutSite.start(directory, network, 'paris'),
    await CutSite.start(directory, network, 'rome'),
  ]
  return [berlin, paris, rome]
}

const outputOf = (sites: readonly CutSite[]): string =>
  sites.map((site) => `${site.name}:\n${site.process.output()}`).join('\n')

/** Waits until each site answers with these addresses. Fails on an empty answer. */
async function answers(t: Test, sites: readonly CutSite[], want: readonly string[]): Promise<void> {
  for (const site of sites) {
    const isSo = async (): Promise<boolean> => {
      const got = await site.answer()
      if (got.length === 0) t.fail(`empty answer of ${site.name}`)
      return got.join() === want.join()
    }
    await until(isSo, `${want} at ${site.name}`, SEEN_MS).catch((error: Error) => {
      throw new Error(`${error.message}\n${outputOf(sites)}`)
    })
  }
}

/** Checks what a site of the majority shows about the address of rome. */
async function reports(t: Test, site: CutSite): Promise<void> {
  const reason = /down: 2 of 2 sites \(berlin, paris\) find it down since \d{4}-.*Z/
  const { quorums } = JSON.parse(await site.ask('status', '-o', 'json'))
  t.match(quorums, [
    {
      ...{ isIsolated: false, heard: 2, sites: 3, quorum: 2, holdDownSeconds: HOLD_DOWN_S },
      members: [
        { site: 'berlin', state: 'this site', observations: 2 },
        { site: 'paris', state: 'heard', observations: 2 },
        { site: 'rome', state: 'silent' },
      ],
      addresses: [{ address: addressOf('rome'), isDown: true, down: ['berlin', 'paris'], reason }],
    },
  ])
  const explained = await site.ask('explain', HOST, 'A', '--client', '127.0.0.1')
  t.match(explained, /; peers\/app\.k\.example\.com@paris \(\S+ of paris, \d+ s ago\)$/m)
  t.match(explained, /10\.9\.0\.3.*: 2 of 2 sites \(berlin, paris\) find it down/)
  const url = `http://127.0.0.1:${ADMIN_PORT}/v1/events?limit=1000`
  const script = `fetch('${url}').then((r) => r.text()).then(console.log)`
  const { events } = JSON.parse(await site.host.run(process.execPath, '-e', script))
  // Others are of the start.
  const byQuorum = events.filter(({ actor, text }: { actor: { kind: string }; text: string }) => {
    return actor.kind === 'quorum' && text.startsWith(`${addressOf('rome')} is taken out: berlin`)
  })
  t.match(byQuorum, [
    {
      actor: { name: HOST },
      before: ALL,
      after: ALL.slice(0, 2),
    },
  ])
}

t.test(
  'sites agree on the health of a site that is cut',
  { ...needsRoot(), ...needs('dig') },
  async (t) => {
    const sites = await startSites(t)
    const [berlin, paris, rome] = sites
    const started = (): boolean => sites.every((site) => site.prints(/listening|serving|Sextant/i))
    await until(started, `the start of ${outputOf(sites)}`, SEEN_MS)
    await until(async () => (await berlin.answer()).length > 0, 'the first answer', SEEN_MS)
    await until(async () => (await paris.answer()).length > 0, 'the first answer', SEEN_MS)
    await until(async () => (await rome.answer()).length > 0, 'the first answer', SEEN_MS)
    await answers(t, sites, ALL)

    // Shorter than the hold-down: no site changes anything. At the start, a site may report its own address down.
    const countOut = (): number => outputOf(sites).split('is taken out').length
    const outBefore = countOut()
    await rome.host.disconnect()
    const endMs = performance.now() + SHORT_CUT_MS
    while (performance.now() < endMs) {
      for (const site of sites) t.strictSame(await site.answer(), ALL, site.name)
    }
    await rome.host.reconnect()
    await answers(t, sites, ALL)
    t.equal(countOut(), outBefore)

    // Longer: the majority takes out the address, and the isolated site serves the clients that reach it.
    await rome.host.disconnect()
    await answers(t, [berlin, paris], ALL.slice(0, 2))
    await until(
      () =>
        rome.prints(
          /site rome is isolated: 1 of 3 sites heard, silent: berlin, paris; its own checks decide/,
        ),
      'isolation',
      SEEN_MS,
    )
    await answers(t, [rome], [addressOf('rome')])
    await until(
      () => berlin.prints(/10\.9\.0\.3 of app\.k\.example\.com is taken out: /),
      'the line',
    )
    await reports(t, berlin)
    t.match(await rome.ask('status'), /rome {2,}isolated/)
    await rome.host.reconnect()
    await answers(t, sites, ALL)
    await until(
      () => rome.prints(/site rome is no longer isolated/),
      'the end of isolation',
      SEEN_MS,
    )

    // All sites cut: each serves only itself.
    for (const site of sites) await site.host.disconnect()
    for (const site of [berlin, paris]) {
      await until(() => site.prints(/is isolated/), `isolation of ${site.name}`, SEEN_MS)
    }
    for (const site of sites) await answers(t, [site], [addressOf(site.name)])
    for (const site of sites) await site.host.reconnect()
    await answers(t, sites, ALL)

    // A dead site.
    await rome.process.end('SIGKILL')
    await answers(t, [berlin, paris], ALL.slice(0, 2))
    berlin.process.process.kill('SIGUSR1')
    const isReloaded = async (): Promise<boolean> => {
      t.strictSame(await berlin.answer(), ALL.slice(0, 2), 'during a reload')
      return berlin.prints(/Reloading complete/)
    }
    await until(isReloaded, 'a reload', SEEN_MS)
    t.strictSame(await berlin.answer(), ALL.slice(0, 2), 'after it')
  },
)
