import { join } from 'node:path'
import t from 'tap'
import type { AnswerMap } from '../../src/plugin/admin-map.ts'
import { startBrowser, startConsole } from '../support/browser.ts'
import { needs } from '../support/peer.ts'
import { root } from '../support/server.ts'

// Long: it drives a browser.

const HOSTILE = '<img src=x onerror=alert(1)>\u202e\u0007'

function record(endpoints: readonly object[]): string {
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app', namespace: 'n' },
    spec: { rootHost: 'app.k.example.com', endpoints },
  })
}

function endpoint(setIdentifier: string, target: string, codes: string, weight = ''): object {
  const providerSpecific = [
    { name: 'geo-code', value: codes },
    ...(weight === '' ? [] : [{ name: 'weight', value: weight }]),
  ]
  const base = { dnsName: 'app.k.example.com', recordType: 'A', recordTTL: 60 }
  return { ...base, setIdentifier, targets: [target], providerSpecific }
}

const RECORD = record([
  endpoint('eu-1', '192.0.2.1', 'GEO-EU', '30'),
  endpoint(HOSTILE, '192.0.2.2', 'GEO-EU', '10'),
  endpoint('us', '192.0.2.3', 'US'),
  endpoint('rest', '192.0.2.4', '*'),
])
/** Frames per second while the map moves, on a machine that runs other tests too. */
const FRAMES_MIN = 20
/** Shapes of the world. */
const SHAPES_MIN = 200

t.test('the map and its tables show what the API has', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const { url, adminPort } = await startConsole(t, { files: { 'records/app.json': RECORD } })
  const api = `http://127.0.0.1:${adminPort}/v1/map?name=app.k.example.com`
  const map = (await (await fetch(api)).json()) as AnswerMap
  const address = `${url}?view=map&name=app.k.example.com&type=A`
  for (const colorScheme of ['light', 'dark'] as const) {
    const { page, violations } = await open(t, address, { colorScheme })
    await page.locator('tr[data-country=DE]').waitFor()
    t.strictSame(await violations(), [], colorScheme)
  }
  const { page } = await open(t, address, { viewport: { width: 1280, height: 900 } })
  const row = page.locator('tr[data-country=DE]')
  t.equal(await row.getAttribute('data-answers'), '192.0.2.1,192.0.2.2')
  t.match((await row.textContent()) ?? '', /eu-1.*75 %[\s\S]*<img.*25 %/)
  t.equal(await page.locator('tr[data-country=US]').getAttribute('data-answers'), '192.0.2.3')
  t.equal(await page.locator('tr[data-country=unknown]').getAttribute('data-answers'), '192.0.2.4')
  const shown: unknown = await page.evaluate(ROWS)
  const wanted = [...map.countries, ...map.others].map(({ code, group }) => {
    const served = map.groups[group]!.shares.flatMap(({ answer }) => map.answers[answer]!.targets)
    return [code, served.sort().join()]
  })
  t.strictSame(shown, wanted, 'each row has the answers of the API')
  t.ok(wanted.length > 150, `${wanted.length} places`)
  await page.getByLabel('Country', { exact: true }).selectOption('JP')
  t.match(
    (await page.locator('.map-details').textContent()) ?? '',
    /Japan: 192\.0\.2\.4 \(rest\): 100 %/,
  )
  if (process.env.SEXTANT_FIXTURES === 'write') {
    // Small, for the size of the file.
    await page.setViewportSize({ width: 720, height: 560 })
    await page.screenshot({ path: join(root, 'docs/pictures/console-map.jpg'), quality: 70 })
    await page.setViewportSize({ width: 1280, height: 900 })
  }
  const canvas = page.locator('canvas')
  await canvas.hover()
  for (let i = 0; i < 4; i++) await page.mouse.wheel(0, -200)
  const [moving, still] = (await page.evaluate(DRAG)) as number[]
  t.ok(moving! < SHAPES_MIN / 4, `${moving} shapes are painted per frame of a drag`)
  t.ok(still! > SHAPES_MIN, `${still} shapes are painted after it`)
  const rate = Number(await canvas.getAttribute('data-fps'))
  t.comment(`${rate} frames per second while the map moves`)
  t.ok(rate >= FRAMES_MIN, `${rate} frames per second`)
  await canvas.focus()
  await page.keyboard.press('0')
  await page.keyboard.press('+')
  t.equal(await page.getByRole('button', { name: 'Zoom out' }).isEnabled(), true)
})

t.test('what-if of drains, manifests and events', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const files = { 'records/app.json': RECORD, drains: '' }
  const { url, adminPort } = await startConsole(t, { files, kuadrant: 'drain drains' })
  const address = `${url}?view=map&name=app.k.example.com&type=A`
  const { page, violations } = await open(t, `${address}&drain=address:192.0.2.3`)
  const us = (answers: string) => page.locator(`tr[data-country=US][data-answers="${answers}"]`)
  await us('192.0.2.4').waitFor()
  await page.getByRole('button', { name: 'Now' }).click()
  await us('192.0.2.3').waitFor()
  await page.getByText('What if these manifests').click()
  await page.getByLabel('Manifests').fill(RECORD.replace('192.0.2.3', '192.0.2.99'))
  await page.getByRole('button', { name: 'Preview' }).last().click()
  await us('192.0.2.99').waitFor()
  t.strictSame(await violations(), [])
  await page.getByRole('button', { name: 'Now' }).click()
  await us('192.0.2.3').waitFor()
  await page.locator('canvas').focus()
  const order = { selector: 'address:192.0.2.3', reason: HOSTILE }
  const reply = await fetch(`http://127.0.0.1:${adminPort}/v1/drains`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(order),
  })
  t.equal(reply.status, 200)
  // The page follows the server, and keeps the focus.
  await us('192.0.2.4').waitFor()
  t.equal(await page.evaluate('document.activeElement.tagName'), 'CANVAS')
  const slider = page.getByLabel('Time')
  await page.locator('input[type=range][max="2"]').waitFor()
  await slider.focus()
  await page.keyboard.press('ArrowLeft')
  const shown = (text: RegExp) => page.getByText(text).first().waitFor()
  await shown(/after the event at/)
  t.match((await slider.getAttribute('aria-valuetext')) ?? '', /^[^B].*: app\.k\.example\.com\. A/)
  await us('192.0.2.4').waitFor()
  // The slider has kept the focus while the map changed.
  await page.keyboard.press('ArrowLeft')
  await shown(/before the event at/)
  t.match(
    (await slider.getAttribute('aria-valuetext')) ?? '',
    /^Before .*: app\.k\.example\.com\. A/,
  )
  await us('192.0.2.3').waitFor()
  await page.keyboard.press('End')
  await us('192.0.2.4').waitFor()
  t.equal(await slider.getAttribute('aria-valuetext'), 'Now')
  t.strictSame(await violations(), [])
})

t.test('the map of the end of a drain, and of a shift', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const drains = 'id:us host:*\n'
  const { url } = await startConsole(t, {
    files: { 'records/app.json': RECORD, drains },
    kuadrant: 'drain drains',
  })
  const address = `${url}?view=map&name=app.k.example.com&type=A`
  const { page, violations } = await open(t, `${address}&undrain=id:us%20host:*`)
  const of = (country: string, answers: string) => {
    return page.locator(`tr[data-country=${country}][data-answers="${answers}"]`)
  }
  await of('US', '192.0.2.3').waitFor()
  await page.getByRole('button', { name: 'Now' }).click()
  await of('US', '192.0.2.4').waitFor()
  const shift = `${HOST} ${HOSTILE.slice(0, -2)} 100`
  for (const [text, answers] of [
    [`${HOST} eu-1 100`, '192.0.2.1'],
    [`${HOST} ${HOSTILE} 100`, '192.0.2.2'],
    [shift, '192.0.2.1,192.0.2.2'],
  ] as const) {
    await page.goto(`${address}&shift=${encodeURIComponent(text)}`)
    await page.getByText(/after a shift of/).waitFor()
    await of('DE', answers).waitFor()
  }
  t.strictSame(await violations(), [])
})

t.test('the world is there before the map', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const { url } = await startConsole(t, { files: { 'records/app.json': RECORD } })
  const { page, violations } = await open(t, `${url}?view=why`)
  let release = (): void => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  await page.route('**/v1/map?*', async (route) => {
    await held
    await route.continue()
  })
  await page.goto(`${url}?view=map&name=app.k.example.com&type=A`)
  await page.getByText('Computing the map').waitFor()
  await page.getByRole('img', { name: 'Map of the world' }).waitFor()
  t.strictSame(await violations(), [])
  release()
  await page.locator('tr[data-country=US]').waitFor()
  t.equal(await page.locator('canvas').count(), 1)
})

t.test('a file that is dropped, and less motion', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const { url } = await startConsole(t, { files: { 'records/app.json': RECORD } })
  const address = `${url}?view=map&name=app.k.example.com&type=A`
  const { page, violations } = await open(t, address)
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await page.locator('tr[data-country=US]').waitFor()
  await page.getByText('What if these manifests').click()
  const text = RECORD.replace('192.0.2.3', '192.0.2.98')
  const dropped = await page.evaluateHandle(
    `(() => {
      const data = new DataTransfer()
      data.items.add(new File([${JSON.stringify(text)}], 'app.json'))
      return data
    })()`,
  )
  await page.getByLabel('Manifests').dispatchEvent('drop', { dataTransfer: dropped })
  await page.waitForFunction(`document.querySelector('textarea').value.includes('192.0.2.98')`)
  await page.getByRole('button', { name: 'Preview' }).last().click()
  await page.locator('tr[data-country=US][data-answers="192.0.2.98"]').waitFor()
  t.strictSame(await violations(), [])
  for (const [reducedMotion, frames] of [
    ['reduce', 1],
    ['no-preference', 2],
  ] as const) {
    await page.emulateMedia({ reducedMotion })
    const drawn = Number(await page.evaluate(DRAWN))
    t.ok(reducedMotion === 'reduce' ? drawn === 1 : drawn >= frames, `${reducedMotion}: ${drawn}`)
  }
})

const HOST = 'app.k.example.com'
/** The places of the tables, and their answers. */
const ROWS = `[...document.querySelectorAll('tr[data-country]')].map(
  ({ dataset }) => [dataset.country, dataset.answers],
)`
/** Presses `Zoom in`, and counts the frames that are drawn until nothing moves. */
const DRAWN = `new Promise((resolve) => {
  const { prototype } = CanvasRenderingContext2D
  const clear = prototype.clearRect
  let drawn = 0
  let still = 0
  let last = 0
  prototype.clearRect = function (...rest) {
    if (this.canvas.isConnected) drawn++
    return clear.apply(this, rest)
  }
  const step = () => {
    still = drawn === last ? still + 1 : 0
    last = drawn
    if (drawn === 0 || still < 20) return requestAnimationFrame(step)
    prototype.clearRect = clear
    resolve(drawn)
  }
  document.querySelector('[aria-label="Zoom in"]').click()
  requestAnimationFrame(step)
})`
/** Drags the map in each of 90 frames. Returns how many shapes are painted per frame, and afterwards. */
const DRAG = `new Promise((resolve) => {
  const canvas = document.querySelector('canvas')
  const { prototype } = CanvasRenderingContext2D
  const fill = prototype.fill
  let painted = 0
  prototype.fill = function (...rest) {
    painted++
    return fill.apply(this, rest)
  }
  let left = 90
  const step = () => {
    const movementX = left > 45 ? 4 : -4
    canvas.dispatchEvent(new PointerEvent('pointermove', { buttons: 1, movementX, bubbles: true }))
    if (left-- > 0) return requestAnimationFrame(step)
    const perFrame = painted / 90
    painted = 0
    let waits = 600
    const rest = () => {
      if (painted === 0 && waits-- > 0) return requestAnimationFrame(rest)
      prototype.fill = fill
      resolve([perFrame, painted])
    }
    rest()
  }
  step()
})`
