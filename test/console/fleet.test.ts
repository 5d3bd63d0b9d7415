import t, { type Test } from 'tap'
import { startBrowser } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

// Long: it drives a browser.

const zoneFile = (serial: number) =>
  `@ 60 SOA ns.a.test. a. ${serial} 1 1 1 1\n@ 60 NS ns.a.test.\n`

/** Starts a server with a zone of this serial. */
async function start(t: Test, serial: number, admin = '') {
  const adminPort = await freePort()
  const corefile = `a.test:{PORT} {
    bind 127.0.0.1
    file zone
    admin 127.0.0.1:${adminPort} {
        console on
        ${admin}
    }
}
`
  const server = await startServer(t, { corefile, files: { zone: zoneFile(serial) } })
  return { ...server, adminPort, url: `http://127.0.0.1:${adminPort}/console/` }
}

t.test('the servers of a fleet, and the views of another one', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const other = await start(t, 8)
  const members = `server ns2 127.0.0.1:${other.adminPort}
        server gone 127.0.0.1:${await freePort()}`
  const { url } = await start(t, 7, members)
  const { page, violations } = await open(t, `${url}?view=fleet`)
  const row = (server: string, state: string) =>
    page.locator(`tr[data-server="${server}"][data-state="${state}"]`)
  for (const [server, state] of [
    ['', 'up'],
    ['ns2', 'up'],
    ['gone', 'down'],
  ] as const) {
    await row(server, state).waitFor()
  }
  t.match(await row('gone', 'down').textContent(), /no server listens on the address/)
  await page.getByRole('alert').getByText('Down: gone').waitFor()
  await page.getByRole('status').getByText('Serials differ: a.test.').waitFor()
  const compared = page.locator('tr[data-zone="a.test."]')
  t.equal(await compared.getAttribute('data-state'), 'different')
  t.match(await compared.textContent(), /this server: 7, ns2: 8/)
  t.match(await page.title(), 'Fleet')
  t.strictSame(await violations(), [])

  await page.getByRole('link', { name: 'Open the views of ns2' }).click()
  await page.getByText('This page shows the server ns2').waitFor()
  await page.getByText(`Process ${other.process.pid} has been running`).waitFor()
  t.match(page.url(), /server=ns2/)
  await page.getByRole('cell', { name: '8', exact: true }).waitFor()
  t.strictSame(await violations(), [])
  await page.getByRole('link', { name: 'Fleet' }).click()
  await row('gone', 'down').waitFor()
  t.match(page.url(), /server=ns2/, 'the navigation keeps the server')
  await page.getByRole('link', { name: 'Open the views of this server' }).click()
  await page.getByText('This page shows the server').waitFor({ state: 'detached' })
  t.notMatch(page.url(), /server=/)
})

t.test(
  'a server that is down, or not known, leaves a page with the reason',
  needs('chromium'),
  async (t) => {
    const open = await startBrowser(t)
    const { url } = await start(t, 7, `server gone 127.0.0.1:${await freePort()}`)
    for (const [server, reason] of [
      ['gone', 'server gone: no server listens on the address'],
      ['<b>', 'server <b>: it is not one of gone'],
    ] as const) {
      const query = new URLSearchParams({ view: 'overview', server })
      const { page, violations } = await open(t, `${url}?${query}`, {
        expected: /status of (502|400)/,
      })
      await page.getByText(reason).first().waitFor()
      t.strictSame(await violations(), [])
      await page.getByRole('link', { name: /^Show 127/ }).click()
      await page.getByRole('rowheader', { name: 'a.test.' }).waitFor()
    }
  },
)
