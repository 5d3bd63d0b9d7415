import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { startBrowser, startConsole } from '../support/browser.ts'
import { needs } from '../support/peer.ts'
import { freePort } from '../support/server.ts'
import { until } from '../support/until.ts'

// Long: it drives a browser, and waits for probes.

const HOSTILE = '<img src=x onerror=alert(1)>\\u202e'
const MARKUP = '<img src=x onerror=alert(1)>\\u{202e}'

/** A TCP server that can be stopped and started. */
class Target {
  #server: Server | undefined

  async start(port: number, host: string): Promise<void> {
    this.#server = createServer((socket) => socket.destroy()).listen(port, host)
    await once(this.#server, 'listening')
  }

  async stop(): Promise<void> {
    await new Promise((done) => this.#server?.close(done))
  }
}

function probed(port: number): string {
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: app}
spec:
  rootHost: app.k.example.com
  healthCheck: {protocol: TCP, port: ${port}, interval: 1s, failureThreshold: 1}
  endpoints:
  - {dnsName: app.k.example.com, recordType: A, setIdentifier: "${HOSTILE}", targets: [127.0.0.2]}
  - {dnsName: app.k.example.com, recordType: A, setIdentifier: two, targets: [127.0.0.3]}
`
}

function many(count: number): string {
  return Array.from({ length: count }, (_, i) => {
    return `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: r${i}}
spec:
  rootHost: n${i}.k.example.com
  endpoints:
  - {dnsName: n${i}.k.example.com, recordType: A, targets: [192.0.2.1]}
`
  }).join('')
}

/** The heading, state line and facts of each endpoint. */
function articles(page: Page) {
  return page.locator('.endpoints article')
}

t.test('an outage is in the timeline of an endpoint', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const port = await freePort()
  const target = new Target()
  const other = new Target()
  await target.start(port, '127.0.0.2')
  await other.start(port, '127.0.0.3')
  t.teardown(() => Promise.all([target.stop(), other.stop()]))
  const { url } = await startConsole(t, {
    files: {
      'records/app.yaml': probed(port),
      drains: `address:127.0.0.3 by=ops reason="${HOSTILE}"\n`,
    },
    kuadrant: `probe probes
        probe-allow 127.0.0.0/8
        drain drains
        slow-start 2s`,
  })
  const { page, violations } = await open(t, `${url}?view=health&name=app.k`)
  const endpoint = articles(page).filter({ hasText: '127.0.0.2' })
  const mark = endpoint.locator('.state-mark').first()
  await mark.getByText('up', { exact: true }).waitFor()
  t.match(await endpoint.getByRole('heading').textContent(), MARKUP, 'markup is text')
  t.match(await articles(page).filter({ hasText: '127.0.0.3' }).textContent(), /drained.*by ops/s)
  const summary = endpoint.locator('summary')
  await summary.focus()
  await page.keyboard.press('Enter')
  await target.stop()
  await mark.getByText('down', { exact: true }).waitFor()
  await target.start(port, '127.0.0.2')
  await mark.getByText('up', { exact: true }).waitFor()
  const states = endpoint.locator('tbody .state-mark')
  const printed = async () => (await states.allTextContents()).join()
  const wanted = 'up,slow start,down,up,unknown'
  await until(async () => (await printed()) === wanted, wanted).catch(async (error) => {
    throw new Error(`the states are ${await printed()}`, { cause: error })
  })
  t.match(await endpoint.getByRole('table').textContent(), /probe default\/app/)
  t.match(await endpoint.getByRole('img').getAttribute('aria-label'), /down \d+ s/)
  t.equal(await endpoint.locator('summary:focus').count(), 1, 'the focus is kept')
  const drains = page.getByRole('table', { name: 'Drains in force' })
  t.match(await drains.textContent(), MARKUP)
  t.match(await page.locator('main').textContent(), /The server has no peers/)
  const map = await endpoint.getByRole('link', { name: 'map' }).getAttribute('href')
  t.equal(map, '?view=map&name=app.k.example.com.&type=A')
  t.strictSame(await violations(), [])
  if (process.env.SEXTANT_FIXTURES === 'write') {
    const path = join(import.meta.dirname, '../../docs/pictures/console-health.png')
    await page.screenshot({ path })
  }
})

t.test('10 000 endpoints have pages and filters', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const { url } = await startConsole(t, { files: { 'records/many.yaml': many(10_000) } })
  const { page, violations } = await open(t, `${url}?view=health`, { colorScheme: 'dark' })
  await page.getByText(/10.000 endpoints/).waitFor()
  t.equal(await articles(page).count(), 50)
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByText('Page 2 of 200').waitFor()
  await page.getByLabel('Name contains').fill('n1234.')
  await page.getByText('1 endpoints: 1 up').waitFor()
  t.match(page.url(), /name=n1234/)
  t.equal(await page.locator('input:focus').count(), 1, 'the focus is kept')
  await page.getByLabel('State', { exact: true }).selectOption('not up')
  await page.getByText('0 endpoints').waitFor()
  t.strictSame(await violations(), [])
})
