// The server with and without the directive `egress`, over the same zone.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { masterFile, PLAIN_ZONE, simpleName } from '../peers/content.mjs'
import { write } from '../peers/files.mjs'
import { saturate } from '../peers/load.mjs'
import { freePort } from '../peers/ports.mjs'
import { startProcess } from '../peers/server-process.mjs'

const START_LIMIT_MS = 60_000
const SELECTORS = 10_000
/** Sets of rules that differ. Each selects its share of the names. */
const PROFILES = 20
export const PODS = 1000
/** All addresses of 127.0.0.0/8 are of this host. */
export const podAddress = (i) => `127.1.${i >> 8}.${i & 255}`
/** Not a Pod. */
export const OTHER = '127.0.0.1'
/** Selected names: all Pods have the rule for them. */
export const selectedName = simpleName

const main = join(dirname(fileURLToPath(import.meta.url)), '../../dist/main.js')
export const directory = mkdtempSync(join(tmpdir(), 'sextant-egress-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))

/** 1 000 Pods and 20 policies that have 10 000 selectors in all, one document per line. */
function* objects() {
  for (let i = 0; i < PODS; i++) {
    const metadata = {
      name: `p${i}`,
      namespace: 'a',
      uid: `${i}`,
      labels: { app: `${i % PROFILES}` },
    }
    const status = { podIPs: [{ ip: podAddress(i) }] }
    yield { apiVersion: 'v1', kind: 'Pod', metadata, status }
  }
  for (let profile = 0; profile < PROFILES; profile++) {
    const each = SELECTORS / PROFILES - 1
    const names = Array.from({ length: each }, (_, i) => ({
      matchName: `n${i}.p${profile}.example`,
    }))
    const toFQDNs = [{ matchPattern: `*.${PLAIN_ZONE}` }, ...names]
    const toPorts = [{ ports: [{ port: '443', protocol: 'TCP' }] }]
    const dns = [
      { ports: [{ port: '53', protocol: 'ANY' }], rules: { dns: [{ matchPattern: '*' }] } },
    ]
    yield {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumNetworkPolicy',
      metadata: { name: `policy-${profile}`, namespace: 'a' },
      spec: {
        endpointSelector: { matchLabels: { app: `${profile}` } },
        egress: [{ toFQDNs, toPorts }, { toPorts: dns }],
      },
    }
  }
}

/** `names`: of the zone, each with an address of its own, of 198.18.0.0/15. */
export function writeContent(names) {
  const lines = Array.from({ length: names }, (_, i) => {
    return `n${i} 300 IN A 198.${18 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}\n`
  })
  write(join(directory, 'zone'), masterFile(PLAIN_ZONE, lines))
  write(
    join(directory, 'objects.yaml'),
    [...objects()].map((one) => `---\n${JSON.stringify(one)}\n`),
  )
}

const egress = (state) => `egress {
        policies ${directory}/objects.yaml
        nftables
        cluster 10.0.0.0/8
        api off
        ${state === undefined ? '' : `state ${state}`}
    }`

/**
 * Starts a server. Resolves once it answers.
 * @param state file for what it knows
 * @param upstream port of the server that answers, as a node agent has one; without it, the zone is its own
 */
export async function startServer(way, { state, port: wanted, upstream } = {}) {
  const port = wanted ?? (await freePort())
  const conf = join(directory, `Corefile.${way}`)
  write(
    conf,
    `${PLAIN_ZONE}:${port} {
    bind 127.0.0.1
    errors
    multisocket 1
    ${way === 'egress' ? egress(state) : ''}
    ${upstream === undefined ? `file ${directory}/zone ${PLAIN_ZONE}` : `forward . 127.0.0.1:${upstream}`}
}
`,
  )
  const server = startProcess(way, process.execPath, [main, 'serve', '-conf', conf])
  const file = join(directory, 'first')
  write(file, `${selectedName(0)} A\n`)
  const end = Date.now() + START_LIMIT_MS
  for (;;) {
    const target = { port, file, clients: 1, outstanding: 1, generator: 'batch' }
    const { completed } = await saturate(target, 0.2).catch(() => ({ completed: 0 }))
    if (completed > 0) return { way, port, server }
    if (server.failure !== undefined) throw new Error(server.failure)
    if (Date.now() > end) throw new Error(`${way} did not answer: ${server.output()}`)
  }
}
