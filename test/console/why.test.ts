import { Resolver } from 'node:dns/promises'
import t, { type Test } from 'tap'
import { type OpenPage, startBrowser } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

// Long: it drives a browser.

const HOSTILE = '<img src=x onerror=alert(1)>'

interface Endpoint {
  readonly name?: string
  readonly type?: string
  readonly id?: string
  readonly targets: readonly string[]
  readonly geo?: string
  readonly weight?: number
}

function record(name: string, endpoints: readonly Endpoint[]): string {
  const listed = endpoints.map(({ name: owner = name, type = 'A', id, targets, geo, weight }) => {
    const properties = [
      ...(geo === undefined ? [] : [{ name: 'geo-code', value: geo }]),
      ...(weight === undefined ? [] : [{ name: 'weight', value: String(weight) }]),
    ]
    return {
      dnsName: owner,
      recordType: type,
      ...(id === undefined ? {} : { setIdentifier: id }),
      targets,
      providerSpecific: properties,
    }
  })
  const metadata = { name: name.split('.')[0]!.replace('*', 'any'), namespace: 'gateways' }
  const spec = { rootHost: name, endpoints: listed }
  return `${JSON.stringify({ apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', metadata, spec })}\n`
}

const FILES = {
  'records/app.yaml': record('app.k.example.com', [
    { id: 'eu', targets: ['192.0.2.1'], geo: 'GEO-EU', weight: 100 },
    { id: HOSTILE, targets: ['192.0.2.2'], geo: 'GEO-EU', weight: 300 },
    { id: 'us', targets: ['192.0.2.3'], geo: '*', weight: 100 },
  ]),
  'records/any.yaml': record('*.any.k.example.com', [{ targets: ['192.0.2.9'] }]),
  'records/alias.yaml': record('alias.k.example.com', [
    { type: 'CNAME', targets: ['app.k.example.com'] },
  ]),
}

async function start(t: Test) {
  const [adminPort, upstream] = [await freePort(), await freePort()]
  const corefile = `k.example.com:{PORT} {
    bind 127.0.0.1
    geoip {
        edns-subnet
        net 5.9.0.0/16 DE
        net 8.8.8.0/24 US
    }
    kuadrant {
        manifests records
    }
    admin 127.0.0.1:${adminPort} {
        console on
    }
}
cached.test:{PORT} {
    bind 127.0.0.1
    cache
    forward . 127.0.0.1:${upstream}
}
cached.test:${upstream} {
    bind 127.0.0.1
    template IN A {
        answer "{{ .Name }} 60 IN A 192.0.2.9"
    }
}
`
  const server = await startServer(t, { corefile, files: FILES })
  return { ...server, url: `http://127.0.0.1:${adminPort}/console/` }
}

/** What the page shows about a question. */
async function explained({ page }: OpenPage): Promise<string> {
  await page.locator('article.why').waitFor()
  return ((await page.locator('article.why').textContent()) ?? '').replaceAll(/\s+/g, ' ')
}

t.test('explanations, each with an address of its own', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const { url } = await start(t)
  type Row = readonly [
    what: string,
    parameters: Readonly<Record<string, string>>,
    texts: readonly RegExp[],
  ]
  const table: readonly Row[] = [
    [
      'by location and weight',
      { name: 'app.k.example.com', type: 'A', subnet: '5.9.0.0/24', resolver: '192.0.2.53' },
      [
        /app\.k\.example\.com\. A for 5\.9\.0\.0\/24: NOERROR/,
        /chooses for 5\.9\.0\.0\/24, from the subnet/,
        /may give this answer to clients with the same first 16 bits/,
        /The client is in .*DE/,
        /matched prefix 5\.9\.0\.0\/16/,
        /k\.example\.com\. at dns:\/\/127\.0\.0\.1:\d+ receives the query/,
        /continent GEO-EU\s*these endpoints serve\s*eu 25 % \(weight 100\)/,
        /default \*\s*not needed/,
        /the draw is \d+ of 0 to 399/,
        /gateways\/app \S*records\/app\.yaml:\d+/,
        /Served: 192\.0\.2\.[12]\. TTL \d+ s/,
      ],
    ],
    [
      'the default',
      { name: 'app.k.example.com', type: 'A', client: '8.8.8.1' },
      [/from the source address/, /us 100 %/, /no draw is needed/],
    ],
    [
      'a wildcard without steering',
      { name: 'x.any.k.example.com', type: 'A', client: '8.8.8.1' },
      [/x\.any\.k\.example\.com\. A, from \*\.any/, /No choice by location or weight/],
    ],
    [
      'a chain of CNAMEs',
      { name: 'alias.k.example.com', type: 'A', subnet: '5.9.0.0/24' },
      [/alias\.k\.example\.com\. CNAME/, /app\.k\.example\.com\. A \(zone/],
    ],
    ['NXDOMAIN', { name: 'none.k.example.com', type: 'A', client: '8.8.8.1' }, [/: NXDOMAIN/]],
    ['no block', { name: 'example.net', type: 'A', client: '8.8.8.1' }, [/No server block serves/]],
  ]
  for (const [what, parameters, texts] of table) {
    const opened = await open(t, `${url}?${new URLSearchParams({ view: 'why', ...parameters })}`)
    const text = await explained(opened)
    for (const expected of texts) t.match(text, expected, what)
    t.equal(await opened.page.locator('main img').count(), 0, what)
    t.strictSame(await opened.violations(), [], what)
  }
})

t.test('a question from the form, and the draw again', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const { url } = await start(t)
  const opened = await open(t, `${url}?view=why`)
  const { page, violations } = opened
  await page.getByLabel('Name').fill('app.k.example.com')
  await page.getByRole('button', { name: 'Explain' }).click()
  await page.getByText('Write the address of a client').waitFor()
  await page.getByLabel('Client subnet (ECS)').fill('5.9.0.0/24')
  await page.getByLabel('Client subnet (ECS)').press('Enter')
  t.match(await explained(opened), /Seed 1\./)
  t.match(page.url(), /subnet=5\.9\.0\.0%2F24/)
  await page.getByRole('link', { name: 'Draw again' }).click()
  await page.getByText('Seed 2.').waitFor()
  t.match(page.url(), /seed=2/)
  const map = page.getByRole('link', { name: 'Map of the name' })
  t.match(await map.getAttribute('href'), /view=map.*name=app\.k\.example\.com/)
  t.ok((await page.getByRole('link', { name: 'Health', exact: true }).count()) >= 3)
  t.strictSame(await violations(), [])
  await page.goBack()
  await page.getByText('Seed 1.').waitFor()
})

t.test(
  'questions that the server refuses, and hostile parameters',
  needs('chromium'),
  async (t) => {
    const open = await startBrowser(t)
    const { url } = await start(t)
    const table = [
      [{ name: HOSTILE.padEnd(300, 'x'), client: '8.8.8.1' }, /invalid name: "<img/],
      [
        { name: 'app.k.example.com', type: HOSTILE, client: '8.8.8.1' },
        /unknown record type: "<img/,
      ],
      [{ name: 'app.k.example.com', client: HOSTILE }, /invalid client address: "<img/],
      [{ name: 'app.k.example.com', subnet: '5.9.0.0/99' }, /invalid client subnet/],
    ] as const
    for (const [parameters, reason] of table) {
      const query = new URLSearchParams({ view: 'why', ...parameters })
      const { page, violations } = await open(t, `${url}?${query}`, { expected: /status of 400/ })
      await page.getByRole('alert').getByText(reason).waitFor()
      t.strictSame(await violations(), [])
    }
  },
)

t.test('an answer of the cache', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const { url, port } = await start(t)
  const resolver = new Resolver()
  resolver.setServers([`127.0.0.1:${port}`])
  await resolver.resolve4('a.cached.test')
  const query = new URLSearchParams({
    view: 'why',
    name: 'a.cached.test',
    client: '127.0.0.1',
  })
  const opened = await open(t, `${url}?${query}`)
  t.match(await explained(opened), /The cache sends an answer that is \d+ s old/)
})
