import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { startBrowser, startConsole } from '../support/browser.ts'
import { fetchLocal } from '../support/http-client.ts'
import { needs } from '../support/peer.ts'
import { until } from '../support/until.ts'

// Long: it drives a browser.

const HOST = 'app.k.example.com'
const OPERATE = 'o'.repeat(32)
const VIEW = 'v'.repeat(32)
const HOSTILE = '<img src=x onerror=alert(1)>\u202e\u001b[31m'

function record(name: string, ids: readonly string[]): string {
  const host = `${name}.k.example.com`
  const endpoints = ids.map((setIdentifier, i) => ({
    ...{ dnsName: host, recordType: 'A', recordTTL: 1, setIdentifier },
    targets: [`192.0.2.${i + 1}`],
  }))
  return JSON.stringify({
    ...{ apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord' },
    metadata: { name, namespace: 'gateways' },
    spec: { rootHost: host, endpoints },
  })
}

const FILES = { 'records/app.json': record('app', ['one', 'two']) }
const DRAINS = { files: FILES, kuadrant: 'drain drains' }

function dig(port: number): string {
  const args = ['@127.0.0.1', '-p', String(port), '+short', '+tries=1', HOST, 'A']
  return execFileSync('dig', args, { encoding: 'utf8' }).trim().split('\n').sort().join(' ')
}

async function previewDrain(page: Page, selector: string): Promise<void> {
  await page.getByLabel('Selector', { exact: true }).fill(selector)
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.getByRole('region', { name: 'Preview' }).waitFor()
}

async function apply(page: Page, typed: string, reason: string, button: string): Promise<void> {
  await page.getByLabel('Reason').fill(reason)
  await page.getByLabel(`Type ${typed} to confirm`).fill(typed)
  await page.getByRole('button', { name: button }).click()
}

/** Checks what the maps of a preview show, of all countries. */
async function checkMaps(t: Test, page: Page, before: string, after: string): Promise<void> {
  for (const [name, answers] of [
    ['Map now', before],
    ['Map after it', after],
  ] as const) {
    const map = page.getByRole('region', { name })
    await map.waitFor()
    const rows = map.locator('tr[data-country]')
    const found = await rows.evaluateAll((all) => all.map((row) => row.dataset.answers))
    t.strictSame([...new Set(found)], [answers], name)
    t.equal(await map.locator('canvas').count(), 1)
  }
}

/** Milliseconds until `dig` gets the answer. */
async function reaches(port: number, answer: string): Promise<number> {
  const startMs = performance.now()
  await until(() => dig(port) === answer, `the answer ${answer}`)
  return performance.now() - startMs
}

t.test('a drain from the page, and its undo', needs('chromium', 'dig'), async (t) => {
  const open = await startBrowser(t)
  const { port, url, adminPort } = await startConsole(t, DRAINS)
  const { page, violations } = await open(t, `${url}?view=act`)
  t.equal(dig(port), '192.0.2.1 192.0.2.2')
  await previewDrain(page, `id:one host:${HOST}`)
  await page.getByRole('cell', { name: '192.0.2.2 100 %', exact: true }).waitFor()
  await checkMaps(t, page, '192.0.2.1,192.0.2.2', '192.0.2.2')
  t.strictSame(await violations(), [], 'with a preview')
  t.match(page.url(), /selector=id%3Aone/)
  const button = page.getByRole('button', { name: 'Drain', exact: true })
  await page.getByLabel('Reason').fill(HOSTILE)
  await page.getByLabel(`Type ${HOST} to confirm`).fill('app')
  t.ok(await button.isDisabled(), 'a wrong confirmation')
  await apply(page, HOST, HOSTILE, 'Drain')
  await page.getByText(/^✓Done: drain/).waitFor()
  // About 0.3 s; a busy machine takes longer.
  const drainMs = await reaches(port, '192.0.2.2')
  t.ok(drainMs < 5000, `the drain reaches clients in ${Math.round(drainMs)} ms`)
  await page
    .getByRole('cell', { name: '<img src=x onerror=alert(1)>\\u{202e}\\u{1b}[31m' })
    .waitFor()
  t.strictSame(await violations(), [], 'with a drain')

  await page.getByRole('button', { name: /^Undo [0-9a-f]{8}$/ }).click()
  await page.getByText(/^✓Undone: drain/).waitFor()
  const undoMs = await reaches(port, '192.0.2.1 192.0.2.2')
  t.ok(undoMs < 5000, `the undo reaches clients in ${Math.round(undoMs)} ms`)
  const events = JSON.parse((await fetchLocal(adminPort, { path: '/v1/events?limit=1000' })).body)
  const acts = events.events.filter(
    ({ actor }: { actor: { kind: string } }) => actor.kind === 'act',
  )
  t.match(acts, [
    {
      actor: { name: 'console' },
      text: /^drain [0-9a-f]{8} host:\S+ id:one .* from 127\.0\.0\.1: <img/,
    },
    { actor: { name: 'console' }, text: /^undrain [0-9a-f]{8} host:\S+ id:one .*: undo: <img/ },
  ])
})

t.test('the end of a drain, and its undo', needs('chromium', 'dig'), async (t) => {
  const open = await startBrowser(t)
  const drains = 'id:one host:* by=ops reason="racks <b>move</b>"\n'
  const { port, url } = await startConsole(t, { ...DRAINS, files: { ...FILES, drains } })
  const { page } = await open(t, `${url}?view=act`)
  t.equal(dig(port), '192.0.2.2')
  await page.getByRole('button', { name: /^End drain/ }).click()
  await page.getByRole('button', { name: 'Preview' }).click()
  await checkMaps(t, page, '192.0.2.2', '192.0.2.1,192.0.2.2')
  await apply(page, '*', 'racks are back', 'End the drain')
  await reaches(port, '192.0.2.1 192.0.2.2')
  await page.getByRole('button', { name: /^Undo/ }).click()
  await reaches(port, '192.0.2.2')
  await page.getByRole('cell', { name: 'racks <b>move</b>' }).waitFor()
})

t.test('a shift from the page, and its end', needs('chromium', 'dig'), async (t) => {
  const open = await startBrowser(t)
  const { port, url } = await startConsole(t, { files: FILES, kuadrant: 'shift shifts.state' })
  const { page, violations } = await open(t, `${url}?view=act&act=shift&name=${HOST}&to=two`)
  await page.getByLabel('Steps').fill('100%')
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.getByRole('region', { name: 'Preview' }).waitFor()
  await checkMaps(t, page, '192.0.2.1,192.0.2.2', '192.0.2.2')
  await apply(page, HOST, 'new racks', 'Begin the shift')
  await reaches(port, '192.0.2.2')
  await page.getByRole('cell', { name: 'new racks' }).waitFor()
  t.strictSame(await violations(), [])
  await page.getByRole('button', { name: /^End shift/ }).click()
  await reaches(port, '192.0.2.1 192.0.2.2')
})

t.test('manifests are compared, not applied', needs('chromium', 'dig'), async (t) => {
  const open = await startBrowser(t)
  const { port, url } = await startConsole(t, DRAINS)
  const expected = /status of 400/
  const { page, violations } = await open(t, `${url}?view=act&act=manifests`, { expected })
  const text = page.getByLabel('Text')
  const preview = page.getByRole('button', { name: 'Preview' })
  t.ok(await preview.isDisabled(), 'nothing to compare')
  const buffer = Buffer.from(record('app', ['one', 'two', 'three']))
  await page.getByLabel('Files').setInputFiles({ name: 'app.json', mimeType: '', buffer })
  await preview.click()
  await page.getByText(/^1 names change, of 1 DNSRecords/).waitFor()
  await checkMaps(t, page, '192.0.2.1,192.0.2.2', '192.0.2.1,192.0.2.2,192.0.2.3')
  t.strictSame(await violations(), [])
  t.equal(await page.getByRole('form', { name: 'Apply' }).count(), 0)
  await text.fill(`kind: [${HOSTILE}`)
  await preview.click()
  await page.getByRole('alert').filter({ hasText: 'manifests:1' }).waitFor()
  await text.fill('x'.repeat(1_100_000))
  await page.getByText('The manifests are longer than 1 MB.').waitFor()
  t.ok(await preview.isDisabled())
  t.equal(dig(port), '192.0.2.1 192.0.2.2')
})

t.test(
  'tokens: none, one that views, one that acts, one that expires',
  needs('chromium'),
  async (t) => {
    const open = await startBrowser(t)
    const tokens = { operate: OPERATE, view: VIEW }
    const { directory, url } = await startConsole(t, {
      ...DRAINS,
      files: { ...FILES, ...tokens },
      admin: 'token operate\ntoken view view',
    })
    const { page, violations } = await open(t, `${url}?view=act`, { expected: /status of 401/ })
    await page.getByText('This page can only preview: acts need a token').waitFor()
    t.strictSame(await violations(), [])
    await previewDrain(page, 'id:one')
    t.equal(await page.getByRole('form', { name: 'Apply' }).count(), 0, 'no act without a token')
    const field = page.getByLabel('Token with the role operate')
    const use = async (token: string): Promise<void> => {
      await field.fill(token)
      await page.getByRole('button', { name: 'Use this token' }).click()
    }
    await use(VIEW)
    await page
      .getByText('the token has the role view')
      .or(page.getByText(/role `view`/))
      .waitFor()
    await use(OPERATE)
    await page.getByRole('form', { name: 'Apply' }).waitFor()
    writeFileSync(join(directory, 'operate'), 'p'.repeat(32))
    await apply(page, 'id:one', 'expired', 'Drain')
    await page.getByText('The server needs a token').waitFor()
    t.notMatch(await page.content(), OPERATE, 'no token is in the page')
    t.equal(await storedTexts(t, page), '')
  },
)

/** What the page stores in the browser. */
async function storedTexts(t: Test, page: Page): Promise<string> {
  t.strictSame(await page.context().cookies(), [])
  const script = 'JSON.stringify({ ...localStorage, ...sessionStorage })'
  const stored = await page.evaluate(script)
  return stored === '{}' ? '' : String(stored)
}
