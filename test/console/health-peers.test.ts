import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { startBrowser } from '../support/browser.ts'
import { needs } from '../support/peer.ts'
import { freePort, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

// Long: it drives a browser, and waits until sites are silent.

const HOST = 'app.k.example.com'
const SITES = ['berlin', 'paris', 'rome'] as const
const OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
/** `2026-01-31 12:00:00`, in the zone of the reader. */
const TIME = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`

type Name = (typeof SITES)[number]

const serverOf = (name: Name): string => `127.0.1.${SITES.indexOf(name) + 1}`
const gatewayOf = (name: Name): string => `127.0.2.${SITES.indexOf(name) + 1}`

/** Ports of the nameservers, of the gateways, and of the console of each site. */
interface Ports {
  readonly dns: number
  readonly gateway: number
  readonly admin: number
}

function corefileOf(name: Name, { dns, admin }: Ports): string {
  const others = SITES.filter((other) => other !== name)
  return `kdrnt:${dns} {
    bind ${serverOf(name)}
    transfer {
        to *
    }
    kuadrant {
        manifests zones
        site ${name}
    }
}
k.example.com:${dns} {
    bind ${serverOf(name)}
    admin ${serverOf(name)}:${admin} {
        console on
    }
    kuadrant {
        manifests zones
        site ${name}
        peer ${others.map((other) => `${serverOf(other)}:${dns}`).join(' ')}
        probe probes
        probe-allow 127.0.0.0/8
        hold-down 1s
    }
}
`
}

function appOf(name: Name, { gateway }: Ports): string {
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: app, namespace: gateways}
spec:
  rootHost: ${HOST}
  healthCheck: {protocol: TCP, port: ${gateway}, interval: 1s, failureThreshold: 1}
  endpoints:
  - {dnsName: ${HOST}, recordType: A, recordTTL: 5, targets: [${gatewayOf(name)}]}
`
}

/** A record with a shift that stays at its first step. */
const SHOP = `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: shop
  namespace: gateways
  annotations: {sextant.io/shift: "to=new steps=25%,100% bake=1h"}
spec:
  rootHost: shop.k.example.com
  endpoints:
  - {dnsName: shop.k.example.com, recordType: A, setIdentifier: old, targets: [192.0.2.1]}
  - {dnsName: shop.k.example.com, recordType: A, setIdentifier: new, targets: [192.0.2.2]}
`

/** A nameserver and a gateway. `kill` ends both as a crash does. */
async function startSite(t: Test, name: Name, ports: Ports) {
  const gateway = createServer((socket) => socket.destroy())
  gateway.listen(ports.gateway, gatewayOf(name))
  await once(gateway, 'listening')
  t.teardown(() => gateway.close())
  const shop = name === 'berlin' ? { 'zones/shop.yaml': SHOP } : {}
  const server = await startServer(t, {
    corefile: corefileOf(name, ports),
    files: { 'zones/app.yaml': appOf(name, ports), ...shop },
    beside: { port: ports.dns, directory: temporaryDirectory(t) },
  })
  const kill = async (): Promise<void> => {
    gateway.close()
    server.process.kill('SIGKILL')
    await server.exited()
  }
  return { kill }
}

/** The rows of a table, as a reader hears them. */
function rowsOf(page: Page, caption: string): Promise<readonly string[]> {
  const rows = page.getByRole('table', { name: caption, exact: true }).locator('tbody tr')
  return rows.evaluateAll((all) =>
    all.map((row) => [...row.children].map((cell) => cell.textContent?.trim()).join(' | ')),
  )
}

/** Waits until a table has exactly these rows, in any order. */
async function shows(page: Page, caption: string, wanted: readonly string[]): Promise<void> {
  let rows: readonly string[] = []
  const isSo = async (): Promise<boolean> => {
    rows = await rowsOf(page, caption)
    return (
      rows.length === wanted.length &&
      wanted.every((text) => rows.some((row) => new RegExp(`^${text}$`).test(row)))
    )
  }
  await until(isSo, caption).catch((error) => {
    throw new Error(`the rows of ${caption} are:\n${rows.join('\n')}`, { cause: error })
  })
}

t.test('what sites say about each other, and a shift', needs('chromium'), async (t) => {
  const ports = { dns: await freePort(), gateway: await freePort(), admin: await freePort() }
  await startSite(t, 'berlin', ports)
  const paris = await startSite(t, 'paris', ports)
  const rome = await startSite(t, 'rome', ports)
  const open = await startBrowser(t)
  const url = `http://${serverOf('berlin')}:${ports.admin}/console/?view=health`
  const { page, violations } = await open(t, url)
  const stale = String.raw`.+ \(stale\)`
  const [parisAt, romeAt] = [
    `${serverOf('paris')}:${ports.dns}`,
    `${serverOf('rome')}:${ports.dns}`,
  ]
  const sites = 'Sites of k.example.com.'
  const found = 'Addresses that a site of k.example.com. finds down'
  const warning = page.getByText('This site is isolated')
  await shows(page, sites, [
    String.raw`berlin \| this site \| 0 s \| - \| 2`,
    String.raw`paris \| heard \| \d+ s \| ${parisAt} \| 2`,
    String.raw`rome \| heard \| \d+ s \| ${romeAt} \| 2`,
  ])
  await shows(page, 'Peers', [
    String.raw`${parisAt} \| paris \| answers \| \d+ s \| \d+ \| 1 \| 0`,
    String.raw`${romeAt} \| rome \| answers \| \d+ s \| \d+ \| 1 \| 0`,
  ])
  await shows(page, found, [])
  await shows(page, 'Shifts of traffic', [
    String.raw`gateways/shop \| new \| running \| 1 of 2 \| 25 % \| ${TIME} \| -`,
  ])
  await page.getByText(/3 of 3 sites are heard\. 2 must find an address down, for 1 s/).waitFor()
  t.equal(await warning.count(), 0)

  await rome.kill()
  await shows(page, 'Peers', [
    String.raw`${parisAt} \| paris \| answers \| \d+ s \| \d+ \| 1 \| 0`,
    String.raw`${romeAt} \| rome \| does not answer: .+ \| ${stale} \| \d+ \| 1 \| 0`,
  ])
  const romes = String.raw`${gatewayOf('rome')} of ${HOST} \| rome`
  const agreed = String.raw`berlin, paris \| (rome|none) \| - \| down: 2 of [23] sites \(berlin, paris\) find it down since .+`
  await shows(page, found, [String.raw`${romes}( \(silent\))? \| down \| ${agreed}`])

  await paris.kill()
  await shows(page, sites, [
    String.raw`berlin \| isolated \| 0 s \| - \| 2`,
    String.raw`paris \| silent \| ${stale} \| ${parisAt} \| 2`,
    String.raw`rome \| silent \| ${stale} \| ${romeAt} \| 2`,
  ])
  const alone = String.raw`none \| - \| down: 1 of 1 sites \(berlin\) finds it down since .+`
  await shows(page, found, [
    String.raw`${gatewayOf('paris')} of ${HOST} \| paris \(silent\) \| down \| berlin \| ${alone}`,
    String.raw`${romes} \(silent\) \| down \| berlin, paris \(silent\) \| ${alone}`,
  ])
  await page.getByText(/1 of 3 sites are heard/).waitFor()
  t.match(await warning.textContent(), /its own checks decide about addresses of other sites/)
  t.strictSame(await violations(), [])
  await page.setViewportSize({ width: 360, height: 800 })
  t.equal(await page.evaluate(OVERFLOW), 0)
})
