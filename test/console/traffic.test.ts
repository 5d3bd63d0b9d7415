import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { startBrowser, startConsole } from '../support/browser.ts'
import { UdpClient } from '../support/client.ts'
import { needs } from '../support/peer.ts'
import { root } from '../support/server.ts'

// Long: it drives a browser.

/** `second`: the set identifier of its second endpoint. */
function recordWith(second: string): string {
  const endpoints = [
    { setIdentifier: 'dublin', targets: ['192.0.2.1'], weight: '3' },
    { setIdentifier: second, targets: ['192.0.2.2'], weight: '1' },
  ]
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app', namespace: 'gateways' },
    spec: {
      rootHost: 'app.k.example.com',
      endpoints: endpoints.map(({ weight, ...endpoint }) => {
        const providerSpecific = [{ name: 'weight', value: weight }]
        return { dnsName: 'app.k.example.com', recordType: 'A', ...endpoint, providerSpecific }
      }),
    },
  })
}
/** Where a picture of the page is written for the documentation. */
const PICTURE = join(root, 'docs/pictures/console-traffic.png')
const PICTURE_MS = 75_000
const HOSTILE = '<script>alert\\(1\\)</script>\\000\\027\\226\\128\\174.k.example.com'

t.test('the traffic of real queries', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const files = { 'records/app.json': recordWith('<img src=x onerror=alert(1)>\u202e') }
  const { url, port } = await startConsole(t, { files })
  const client = await UdpClient.connect(port)
  t.teardown(() => client.close())
  const ask = async (count: number, name: string): Promise<void> => {
    for (let i = 0; i < count; i++) await client.ask({ name, type: 'A' })
  }
  await ask(400, 'app.k.example.com')
  await ask(20, HOSTILE)
  const address = `${url}?view=traffic&period=10m&name=app.k.example.com&type=A`
  for (const colorScheme of ['light', 'dark'] as const) {
    const { page, violations } = await open(t, address, { colorScheme, reducedMotion: 'reduce' })
    const endpoints = page.getByRole('region', { name: /^Answers of app.k.example.com A/ })
    const dublin = endpoints.getByRole('row', { name: /dublin/ })
    await dublin.waitFor()
    const cells = await dublin.getByRole('cell').allTextContents()
    t.strictSame(cells.slice(0, 3), ['all', '3', '75 %'])
    const share = Number.parseFloat(cells[3]!)
    t.ok(share > 60 && share < 90, `${share} % of the answers`)
    await endpoints
      .getByRole('rowheader', { name: /<img src=x onerror=alert\(1\)>\\u\{202e\}/ })
      .waitFor()

    const names = page.getByRole('region', { name: /^Top names/ })
    const first = await names.getByRole('row').nth(1).textContent()
    t.match(first, /^app\.k\.example\.com\.ANOERROR9\d %$/)
    const hostile = await names.getByRole('row').nth(2).getByRole('rowheader').textContent()
    t.equal(hostile, '<script>alert\\(1\\)</script>\\000\\027\\226\\128\\174.k.example.com.')

    for (const title of ['Queries', 'Response codes', 'Latency in the server']) {
      await page.getByRole('img', { name: new RegExp(`^${title}: a chart`) }).waitFor()
    }
    t.strictSame(await violations(), [], colorScheme)
    const summary = page.getByText('Response codes as a table')
    await summary.focus()
    await page.keyboard.press('Enter')
    const table = page.getByRole('region', { name: 'Response codes (per second)' })
    await table.getByRole('columnheader', { name: 'NXDOMAIN' }).waitFor()
    const row = await table.getByRole('row').nth(1).getByRole('cell').allTextContents()
    t.ok(
      row.every((text) => Number(text) >= 0),
      row.join(),
    )
    t.strictSame(await violations(), [], 'with a table')
  }
})

t.test('the period is in the address', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const { url } = await startConsole(t)
  const { page, violations } = await open(t, `${url}?view=traffic`)
  await page.getByText('No queries.').waitFor()
  await page.getByLabel('Period').selectOption('24 hours')
  await page.getByText('Values are means of 60 seconds.').waitFor()
  t.match(page.url(), /[?&]period=24h/)
  t.strictSame(await violations(), [])
  await page.goto(`${page.url()}&name=${encodeURIComponent('<img src=x onerror=alert(1)>')}`)
  await page.getByText(/^Answers of <img src=x onerror=alert\(1\)> A/).waitFor()
  await page.getByText('Values are means of 60 seconds.').waitFor()
  t.equal(await page.getByLabel('Period').inputValue(), '24h')
})

if (process.env.SEXTANT_FIXTURES === 'write') {
  t.test(
    'the picture of the documentation',
    { ...needs('chromium'), timeout: 3 * PICTURE_MS },
    async (t) => {
      const open = await startBrowser(t)
      const { url, port } = await startConsole(t, {
        files: { 'records/app.json': recordWith('milan') },
      })
      const client = await UdpClient.connect(port)
      t.teardown(() => client.close())
      const endMs = Date.now() + PICTURE_MS
      for (let i = 0; Date.now() < endMs; i++) {
        for (let k = 0; k < 20 + 15 * Math.sin(i / 7); k++) {
          const name = k % 7 === 0 ? `old${k}.k.example.com` : 'app.k.example.com'
          await client.ask({ name, type: 'A' })
        }
        await delay(200)
      }
      const address = `${url}?view=traffic&period=10m&name=app.k.example.com&type=A`
      const { page } = await open(t, address, { viewport: { width: 1000, height: 720 } })
      await page.getByText('dublin').waitFor()
      await page.screenshot({ path: PICTURE, fullPage: true })
    },
  )
}
