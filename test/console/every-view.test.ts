import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import type { ServerStatus } from '../../src/base/telemetry/status.ts'
import { type OpenPage, startBrowser, startConsole } from '../support/browser.ts'
import { UdpClient } from '../support/client.ts'
import { HOSTILE_TEXTS } from '../support/hostile-texts.ts'
import { fetchLocal } from '../support/http-client.ts'
import { needs } from '../support/peer.ts'
import { until } from '../support/until.ts'

// Long: it drives a browser.

const HOST = 'hostile.k.example.com'
const TEXTS_HOST = `txt.${HOST}`
/** Of each name with a hostile label: enough for a sample. */
const QUERIES = 15
/** A phone, and a screen of 4K. */
const WIDTHS = [3840, 360]

/** What a page shows for a text: the hidden characters of `HOSTILE_TEXTS` are all that is not ASCII. */
const SHOWN = HOSTILE_TEXTS.map((text) =>
  text.replaceAll(/[^ -~]/gu, (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`),
)

/** The text as a label in the text form of names. */
function labelOf(text: string): string {
  const octets = [...Buffer.from(text).subarray(0, 63)]
  return octets.map((octet) => `\\${String(octet).padStart(3, '0')}`).join('')
}

/** What a DNSRecord may have of a text in a name: printable ASCII without quotes and backslashes. */
const nameOf = (text: string): string => text.replaceAll(/[^!#-&*-[\]-~]/g, '').slice(0, 63)

function recordOf(name: string, endpoints: readonly object[], rootHost = HOST): object {
  return {
    ...{ apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord' },
    ...{ metadata: { name, namespace: 'constructor' }, spec: { rootHost, endpoints } },
  }
}

function addressOf(dnsName: string, setIdentifier: string, i: number, properties: object = {}) {
  const endpoint = { dnsName, recordType: 'A', recordTTL: 60, targets: [`192.0.2.${i + 1}`] }
  return { ...endpoint, setIdentifier, ...properties }
}

/** Without weights all endpoints are in each answer, and are not counted. */
const WEIGHT = { providerSpecific: [{ name: 'weight', value: '1' }] }

const RECORDS = [
  recordOf('choice', [
    addressOf(HOST, 'plain', 100, WEIGHT),
    ...HOSTILE_TEXTS.map((text, i) => addressOf(HOST, text, i, WEIGHT)),
  ]),
  recordOf('texts', [
    {
      ...{ dnsName: TEXTS_HOST, recordType: 'TXT', recordTTL: 60 },
      targets: HOSTILE_TEXTS.map((text) => `"${labelOf(text)}"`),
    },
  ]),
  ...HOSTILE_TEXTS.flatMap((text, i) => [
    recordOf(
      `s${i}`,
      [addressOf(`s${i}.${HOST}`, text, i), addressOf(`s${i}.${HOST}`, 'other', 100)],
      `s${i}.${HOST}`,
    ),
    recordOf(`name${i}`, [addressOf(`${nameOf(text)}.${HOST}`, '', i)]),
    recordOf(`ignored${i}`, [
      addressOf(`i${i}.${HOST}`, '', i, { providerSpecific: [{ name: text, value: text }] }),
    ]),
    recordOf(text, []),
  ]),
]

/** A server whose data is that of the server at a port, with hostile texts in place of all its texts. */
async function startMirror(t: Test, portOf: () => number): Promise<number> {
  const replace = (_: string, value: unknown): unknown =>
    typeof value === 'string' ? HOSTILE_TEXTS.join(' ') : value
  const server = createServer(async ({ method, url: path }, response) => {
    const headers = { 'content-type': 'application/json' }
    const sent = method === 'POST' ? JSON.stringify({ name: HOST, client: '192.0.2.1' }) : undefined
    const { status, body } = await fetchLocal(portOf(), { method, path, headers }, sent)
    response.writeHead(status, headers).end(JSON.stringify(JSON.parse(body), replace))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

/** Starts a server that has the texts wherever a text may be, and another one in its fleet. */
async function start(t: Test) {
  let adminPort = 0
  const mirrorPort = await startMirror(t, () => adminPort)
  const server = await startConsole(t, {
    files: { 'records/all.yaml': RECORDS.map((one) => JSON.stringify(one)).join('\n---\n') },
    admin: `server mirror 127.0.0.1:${mirrorPort}`,
    kuadrant: 'drain drains\nshift shifts.state',
  })
  adminPort = server.adminPort
  const client = await UdpClient.connect(server.port)
  t.teardown(() => client.close())
  const names = HOSTILE_TEXTS.map((text) => `${labelOf(text)}.${HOST}`)
  for (const name of [...names, ...names.map(() => HOST)]) {
    for (let i = 0; i < QUERIES; i++) await client.ask({ name, type: 'A' })
  }
  return server
}

/** Drains the endpoints with the texts, and shifts their traffic, by actors and for reasons that are the texts. */
async function drainAll(adminPort: number): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const ask = async (method: string, path: string, body?: object): Promise<string> => {
    const reply = await fetchLocal(adminPort, { method, path, headers }, JSON.stringify(body))
    if (reply.status !== 200) throw new Error(JSON.stringify(reply.body))
    return reply.body
  }
  for (const [i, text] of HOSTILE_TEXTS.entries()) {
    const why = { reason: text, actor: text }
    // The set identifier of an ordered shift has no space.
    const to = /\s/.test(text) ? 'other' : text
    await ask('POST', '/v1/shifts', {
      name: `s${i}.${HOST}`,
      to,
      steps: '5%,100%',
      bake: '1h',
      ...why,
    })
    const selector = `host:${HOST} id:${JSON.stringify(text)}`
    await ask('POST', '/v1/drains', { selector, ...why })
    // Drains that begin together are one event.
    const isDrained = async (): Promise<boolean> => {
      const { zones } = JSON.parse(await ask('GET', '/v1/status')) as ServerStatus
      return zones[0]?.endpoints?.drained === i + 1
    }
    await until(isDrained, `drain ${i}`)
  }
}

/** Waits until a page shows all of these texts. */
async function shows(t: Test, page: Page, texts: readonly string[]): Promise<void> {
  const wanted = JSON.stringify(texts)
  const missing = `(${wanted}).filter((text) => !document.body.textContent.includes(text))`
  const find = async () => (await page.evaluate(missing)) as readonly string[]
  const wait = until(async () => (await find()).length === 0, 'the texts')
  await wait.catch(async () => t.strictSame(await find(), [], `texts of ${page.url()}`))
}

/** What texts of the server made of a page, beside text. */
const MADE = `(() => {
  const all = [...document.querySelectorAll('*')]
  const attributes = all.flatMap((one) => [...one.attributes])
  const read = attributes.filter(({ name }) => /^(aria-.*|title|alt|placeholder|label)$/.test(name))
  const texts = [document.title, document.body.textContent, ...read.map(({ value }) => value)]
  return {
    attacked: globalThis.attacked,
    elements: all.filter((one) => one.matches(
      'img, iframe, object, embed, base, style, body script, head script:not([src="console.js"])',
    )).map(({ outerHTML }) => outerHTML),
    handlers: attributes.filter(({ name }) => /^(on|srcdoc)/.test(name)).map(({ value }) => value),
    links: [...document.links].filter(({ protocol }) => protocol !== 'http:').map(({ href }) => href),
    hidden: texts.join('').match(/(?!\\n)[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Cs}]/gu) ?? [],
  }
})()`
const NOTHING = { attacked: undefined, elements: [], handlers: [], links: [], hidden: [] }

async function check(t: Test, { page }: OpenPage, what: string): Promise<void> {
  t.strictSame(await page.evaluate(MADE), NOTHING, what)
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 })
    const wide = Number(await page.evaluate('document.scrollingElement.scrollWidth - innerWidth'))
    t.ok(wide <= 0, `${what}: ${wide} pixels too wide for ${width}`)
  }
}

/** Opens a view of the console, and waits until it shows texts. */
type OpenView = (
  parameters: Readonly<Record<string, string>>,
  texts: readonly string[],
) => Promise<void>

const ATTACK = 'globalThis.attacked'

t.test('every view with texts that attack it', needs('chromium'), async (t) => {
  const { url, adminPort } = await start(t)
  const opened = await (await startBrowser(t))(t, `${url}plain`)
  const { page, violations } = opened
  const view: OpenView = async (parameters, texts) => {
    await page.goto(`${url}?${new URLSearchParams(parameters)}`)
    await shows(t, page, texts)
  }
  const look = async (what: string): Promise<void> => {
    await check(t, opened, what)
    t.strictSame(await violations(), [], what)
  }
  // It has only endpoints that serve.
  await view({ view: 'traffic', period: '10m', name: HOST, type: 'A' }, SHOWN)
  await look('traffic')
  await drainAll(adminPort)
  await page.goto(`${url}plain`)
  await shows(t, page, SHOWN)
  await look('plain')

  await view({ view: 'map', name: HOST, type: 'A' }, SHOWN)
  await page.getByLabel('Time').focus()
  const actors: string[] = []
  for (let i = 0; i <= HOSTILE_TEXTS.length; i++) {
    await page.keyboard.press('ArrowLeft')
    actors.push((await page.getByLabel('Time').getAttribute('aria-valuetext')) ?? '')
  }
  const isNamed = (actor: string) => SHOWN.some((text) => actor.includes(text))
  t.ok(actors.every(isNamed), actors.join(' '))
  await look('map')
  await view({ view: 'overview' }, [ATTACK])
  await look('overview')
  const why = { view: 'why', name: HOST, client: '192.0.2.1' }
  await view(why, SHOWN)
  await look('why')
  await view({ ...why, name: TEXTS_HOST, type: 'TXT' }, [ATTACK])
  await check(t, opened, 'why TXT')
  await view({ view: 'health' }, SHOWN)
  await look('health')
  await view({ view: 'act', selector: `host:${HOST}` }, SHOWN)
  // On a busy machine, a preview may take longer than the page waits: it says so, and the user asks again.
  const after = page.getByRole('region', { name: 'Map after it' })
  const fault = page.locator('[role=alert] .message')
  await until(async () => {
    await page.getByRole('button', { name: 'Preview' }).click()
    await after.or(fault).first().waitFor()
    return after.isVisible()
  }, 'a preview')
  await look('act')
  await view({ view: 'fleet' }, [ATTACK])
  await look('fleet')
  for (const id of ['map', 'overview', 'why', 'health', 'traffic', 'act']) {
    const server = { server: 'mirror', name: HOST, client: '192.0.2.1' }
    await view({ view: id, ...server }, [ATTACK])
    await check(t, opened, `${id} of another server`)
  }
})

t.test('addresses of views that attack them', needs('chromium'), async (t) => {
  const { url } = await startConsole(t)
  const opened = await (await startBrowser(t))(t, `${url}plain`, { expected: /status of 400/ })
  // Of these, an address of the page has place for some.
  const text = [1, 8, 10].map((i) => HOSTILE_TEXTS[i]).join(' ')
  const others = ['type', 'client', 'subnet', 'event', 'drain', 'shift', 'selector', 'act', 'to']
  const query = new URLSearchParams(
    [...others, 'name', 'period', 'steps'].map((key): [string, string] => [key, text]),
  )
  for (const id of ['map', 'overview', 'why', 'health', 'traffic', 'act', 'fleet', text]) {
    for (const server of id === 'overview' ? ['', text] : ['']) {
      query.set('view', id)
      query.set('server', server)
      await opened.page.goto(`${url}?${query}`)
      await opened.page.getByRole('heading', { level: 1 }).waitFor()
      await opened.page.waitForLoadState('networkidle')
      await check(t, opened, `${id} ${server}`)
    }
  }
})
