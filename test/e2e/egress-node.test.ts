import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ALLOWED_MS, DROPPED_MS, EgressNode, UPSTREAM } from '../support/egress-node.ts'
import { needs, needsRoot, run } from '../support/peer.ts'
import { until } from '../support/until.ts'

/*
 * The node agent end to end: Pods, the Internet and the node are network namespaces, and nftables, connection tracking, DNS
 * and connections are real.
 */

t.setTimeout(900_000)

const NEEDS = { ...needsRoot(), ...needs('ip', 'nft', 'conntrack', 'dig') }
/** An address of the Internet that no policy names. */
const OTHER = { address: '198.18.200.1', port: 443 }
const ZONE = `$TTL 300
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A ${UPSTREAM}
www A 198.18.0.1
www AAAA 2001:db8:1::1
v2 A 198.18.0.2
six AAAA 2001:db8:1::6
alias CNAME www
a.wild A 198.18.1.1
a.b.wild A 198.18.1.2
short 2 A 198.18.0.9
rebind A 10.1.0.1
rebind A 127.0.0.1
rebind A 169.254.169.254
rebind A 198.18.0.10
${Array.from({ length: 40 }, (_, i) => `n${i} A 198.18.2.${i + 1}`).join('\n')}
`
/** 100 names with 100 addresses each. */
const MANY = Array.from({ length: 10_000 }, (_, i) => {
  return `m${Math.floor(i / 100)} A 198.18.${100 + Math.floor(i / 100)}.${1 + (i % 100)}\n`
}).join('')
const ZONES = { 'example.com.': ZONE, 'example.net.': ZONE.replaceAll('198.18.', '198.19.') }

function pod(name: string, addresses: readonly string[]): string {
  const ips = addresses.map((ip) => `{ ip: "${ip}" }`).join(', ')
  return `---
apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: a, labels: { app: ${name} } }
status: { podIPs: [${ips}] }
`
}

interface PolicyOptions {
  readonly fqdns: readonly string[]
  /** Of the names that may be asked for. */
  readonly dns?: string
  readonly ports?: string
}

/** A CiliumNetworkPolicy for the Pod of that name. `fqdns`: matchName, or matchPattern if it has a star. */
function policy(app: string, { fqdns, dns = '*', ports = '' }: PolicyOptions): string {
  const list = fqdns.map(
    (name) => `{ ${name.includes('*') ? 'matchPattern' : 'matchName'}: "${name}" }`,
  )
  return `---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: ${app}, namespace: a }
spec:
  endpointSelector: { matchLabels: { app: ${app} } }
  egress:
    - toEndpoints: [{ matchLabels: { k8s-app: kube-dns } }]
      toPorts: [{ ports: [{ port: "53", protocol: ANY }], rules: { dns: [{ matchPattern: "${dns}" }] } }]
    - toFQDNs: [${list.join(', ')}]
${ports === '' ? '' : `      toPorts: [{ ports: [${ports}] }]\n`}`
}

const TCP_443 = '{ port: "443", protocol: TCP }'
const APP = {
  objects:
    pod('app', ['10.1.0.2', 'fd01::2']) +
    policy('app', { fqdns: ['*.example.com', '*.*.wild.example.com'], ports: TCP_443 }) +
    pod('strict', ['10.1.0.3']) +
    policy('strict', { fqdns: ['*.example.com'], dns: '*.example.com' }) +
    pod('free', ['10.1.0.4']),
  podAddresses: { app: ['10.1.0.2', 'fd01::2'], strict: ['10.1.0.3'], free: ['10.1.0.4'] },
  zones: ZONES,
}

t.test('what clients may do', NEEDS, async (t) => {
  const node = await EgressNode.start(t, {
    ...APP,
    zones: { ...ZONES, 'example.com.': ZONE + MANY },
  })
  const app = node.pod('app')
  const strict = node.pod('strict')

  await t.test('the first packet to an address of a new name passes', async (t) => {
    for (const [name, type] of [
      ['www.example.com', 'A'],
      ['www.example.com', 'AAAA'],
      ['six.example.com', 'AAAA'],
      ['alias.example.com', 'A'],
      ['v2.example.com', 'A'],
      ...Array.from({ length: 40 }, (_, i) => [`n${i}.example.com`, 'A'] as const),
    ] as const) {
      const { result, retransmits } = await app.visit(name, 443, type)
      t.strictSame([result, retransmits], ['open', 0], `${name} ${type}`)
    }
  })

  await t.test('all else is dropped', async (t) => {
    const { addresses } = await app.resolve('www.example.net')
    t.strictSame(addresses, ['198.19.0.1'], 'a name that is not selected resolves')
    const dropped = [
      OTHER,
      { address: '198.19.0.1', port: 443 },
      { address: '198.18.0.1', port: 80 },
      { address: '198.18.0.1', port: 443, protocol: 'udp' },
      { address: '2001:db8:1::2', port: 443 },
    ] as const
    for (const target of dropped)
      t.equal(await app.connect(target, DROPPED_MS), 'dropped', JSON.stringify(target))
    t.equal(await node.pod('free').connect(OTHER, ALLOWED_MS), 'open', 'a Pod without policy')
    const other = { address: '198.18.0.1', port: 443 }
    t.equal(await strict.connect(other, DROPPED_MS), 'dropped', 'a Pod that did not ask')
  })

  await t.test('a star is one label', async (t) => {
    await app.resolve('a.wild.example.com')
    t.equal(await app.connect({ address: '198.18.1.1', port: 443 }, DROPPED_MS), 'dropped')
    t.equal((await app.visit('a.b.wild.example.com', 443)).result, 'open')
  })

  await t.test('100 names of a wildcard with 100 addresses each', async (t) => {
    for (let i = 0; i < 100; i++) {
      const { addresses } = await app.resolve(`m${i}.example.com`)
      if (addresses.length !== 100) t.fail(`m${i}: ${addresses.length} addresses`)
    }
    const inForce = async () =>
      (await node.ruleset()).match(/10\.1\.0\.2 \. 198\.18\.1\d\d\.\d+ /g)?.length
    // Replies may have left before: they wait for 100 ms.
    await until(async () => (await inForce()) === 10_000, '10 000 addresses')
    for (const i of [0, 33, 66, 99]) {
      const target = { address: `198.18.${100 + i}.${1 + i}`, port: 443 }
      t.equal(await app.connect(target, ALLOWED_MS), 'open')
    }
    t.equal(await app.connect(OTHER, DROPPED_MS), 'dropped')
  })

  await t.test('DNS rules', async (t) => {
    t.equal((await strict.resolve('www.example.net')).rcode, 'EREFUSED')
    t.equal((await strict.visit('www.example.com', 80)).result, 'open')
    const udp = { address: '198.18.0.1', port: 443, protocol: 'udp' } as const
    t.equal(await strict.connect(udp, ALLOWED_MS), 'open', 'all protocols')
    const tls = { address: '198.18.0.1', port: 853 }
    t.equal(await strict.connect(tls, DROPPED_MS), 'dropped', 'DNS over TLS')
    for (const server of ['198.18.200.1', UPSTREAM])
      t.equal((await strict.resolve('www.example.com', 'A', server)).rcode, 'NOERROR', server)
  })

  await t.test('addresses of the cluster and the host are not granted', async (t) => {
    const { addresses } = await app.resolve('rebind.example.com')
    t.equal(addresses.length, 4, 'all are in the answer')
    t.equal(await app.connect({ address: '198.18.0.10', port: 443 }, ALLOWED_MS), 'open')
    const ruleset = await node.ruleset()
    for (const address of ['127.0.0.1', '169.254.169.254', '10.1.0.2 . 10.1.0.1'])
      t.notMatch(ruleset, new RegExp(`\\. ${address} `), address)
  })

  await t.test('after the TTL open connections continue, new ones are dropped', async (t) => {
    const short = { address: '198.18.0.9', port: 443 }
    t.equal((await strict.visit('short.example.com', 443)).result, 'open')
    t.equal(await strict.open('long', short), 'open')
    const isDropped = async () => (await app.connect(short, DROPPED_MS)) === 'dropped'
    await until(isDropped, 'an expired address')
    t.equal(await strict.echo('long'), 'open')
  })
})

t.test('a Pod behind an interface that has no address', NEEDS, async (t) => {
  const node = await EgressNode.start(t, {
    objects: pod('routed', ['10.9.0.2']) + policy('routed', { fqdns: ['*.example.com'] }),
    podAddresses: {},
    routedPods: { routed: '10.9.0.2' },
    zones: ZONES,
  })
  const routed = node.pod('routed')
  const { result, retransmits } = await routed.visit('www.example.com', 443)
  t.strictSame([result, retransmits], ['open', 0])
  t.equal(await routed.connect(OTHER, DROPPED_MS), 'dropped')
})

t.test('a slow kernel', NEEDS, async (t) => {
  // Not in the folder of the test, which the node replaces.
  const tools = mkdtempSync(join(tmpdir(), 'sextant-nft-'))
  t.teardown(() => rmSync(tools, { recursive: true }))
  const blocked = join(tools, 'blocked')
  const unlisted = join(tools, 'unlisted')
  const real = execFileSync('sh', ['-c', 'command -v nft'], { encoding: 'utf8' }).trim()
  writeFileSync(
    join(tools, 'nft'),
    `#!${process.execPath}
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'

// Long: it waits for TTLs, and restarts its program many times.
const args = process.argv.slice(2)
while (args.includes('table') && existsSync('${unlisted}')) await new Promise((resolve) => setTimeout(resolve, 50))
const child = spawn('${real}', args, { stdio: ['pipe', 'inherit', 'inherit'] })
const pass = (data) => existsSync('${blocked}') || child.stdin.write(data)
process.stdin.on('data', (data) => setTimeout(pass, 50, data))
process.stdin.on('end', () => setTimeout(() => child.stdin.end(), 100))
child.on('exit', (code) => process.exit(code ?? 1))
`,
  )
  chmodSync(join(tools, 'nft'), 0o755)
  const env = { PATH: `${tools}:${process.env.PATH}` }
  const node = await EgressNode.start(t, { ...APP, env })
  const app = node.pod('app')

  await t.test('replies wait by 50 ms', async (t) => {
    for (let i = 0; i < 20; i++) {
      const { result, retransmits } = await app.visit(`n${i}.example.com`, 443)
      t.strictSame([result, retransmits], ['open', 0], `n${i}`)
    }
  })

  await t.test('queries for one new name at the same time', async (t) => {
    for (let i = 20; i < 25; i++) {
      const visits = Array.from({ length: 20 }, () => app.visit(`n${i}.example.com`, 443))
      for (const { result, retransmits } of await Promise.all(visits))
        t.strictSame([result, retransmits], ['open', 0], `n${i}`)
    }
  })

  await t.test('kill -9 between what is learned and what the kernel gets', async (t) => {
    const v2 = { address: '198.18.0.2', port: 443 }
    writeFileSync(blocked, '')
    const pod = ['netns', 'exec', node.network.nameOf('app')]
    const lookup = run('ip', [...pod, 'dig', `@${UPSTREAM}`, 'v2.example.com', '+tries=1'])
    const state = join(node.directory, 'state.json')
    await until(() => readFileSync(state, 'utf8').includes('v2.example.com'), 'the state')
    node.agent.process.kill('SIGKILL')
    await node.agent.exited()
    t.notMatch((await lookup).stdout, /198\.18\.0\.2/, 'no reply came')
    t.equal(await app.connect(v2, DROPPED_MS), 'dropped')
    rmSync(blocked)
    node.agent = await node.startAgent()
    t.equal(await app.connect(v2, ALLOWED_MS), 'open', 'it is not lost')
    const element = /10\.1\.0\.2 \. 198\.18\.0\.2 \. tcp \. 443 timeout (?:(\d+)m)?(?:(\d+)s)?/
    const [, minutes = '0', seconds = '0'] = element.exec(await node.ruleset()) ?? []
    const lasts = Number(minutes) * 60 + Number(seconds)
    // Its TTL, and 5 minutes for the next collection: not from the restart on.
    t.ok(lasts > 0 && lasts <= 602, `${lasts} s: not longer than without the end`)
    t.equal(await app.connect(OTHER, DROPPED_MS), 'dropped')
  })

  await t.test('kill -9: answers do not wait until the table is listed', async (t) => {
    writeFileSync(unlisted, '')
    node.agent.process.kill('SIGKILL')
    await node.agent.exited()
    node.agent = await node.startAgent()
    const visits = ['n0', 'n30'].map((name) => app.visit(`${name}.example.com`, 443))
    for (const { result } of await Promise.all(visits)) t.equal(result, 'open')
    t.equal(await app.connect({ address: '198.18.2.2', port: 443 }, ALLOWED_MS), 'open', 'n1')
    t.equal(await app.connect(OTHER, DROPPED_MS), 'dropped')
    rmSync(unlisted)
    const state = join(node.directory, 'state.json')
    const isWritten = () => readFileSync(state, 'utf8').includes('n30.example.com')
    await until(isWritten, 'the state, which is written once all is known')
    t.match(readFileSync(state, 'utf8'), 'n1.example.com')
  })

  await t.test('kill -9: a policy that changed meanwhile is in force at the start', async (t) => {
    node.agent.process.kill('SIGKILL')
    await node.agent.exited()
    node.putObjects(APP.objects.replaceAll('*.example.com', 'n0.example.com'))
    node.agent = await node.startAgent()
    t.equal(await app.connect({ address: '198.18.2.2', port: 443 }, DROPPED_MS), 'dropped', 'n1')
    t.equal((await app.visit('n0.example.com', 443)).result, 'open')
  })
})

t.test('restarts', NEEDS, async (t) => {
  const node = await EgressNode.start(t, APP)
  const app = node.pod('app')
  const www = { address: '198.18.0.1', port: 443 }
  t.equal((await app.visit('www.example.com', 443)).result, 'open')
  t.equal(await app.open('long', www), 'open')

  await t.test('kill -9: what is allowed stays allowed, nothing else is', async (t) => {
    // Some are in the middle of it.
    const visits = Array.from({ length: 10 }, (_, i) => app.resolve(`n${i}.example.com`))
    node.agent.process.kill('SIGKILL')
    await node.agent.exited()
    t.equal(await app.echo('long'), 'open')
    t.equal(await app.connect(www, ALLOWED_MS), 'open')
    t.equal(await app.connect(OTHER, DROPPED_MS), 'dropped')
    node.agent = await node.startAgent()
    t.equal(await app.connect(www, ALLOWED_MS), 'open', 'after the restart')
    t.equal(await app.connect(OTHER, DROPPED_MS), 'dropped')
    // A reply that left had its address in force, and keeps it.
    for (const { addresses } of await Promise.all(visits))
      for (const address of addresses)
        t.equal(await app.connect({ address, port: 443 }, ALLOWED_MS), 'open', address)
    t.equal((await app.visit('n11.example.com', 443)).result, 'open', 'a new name')
    t.equal(await app.echo('long'), 'open')
  })

  await t.test('a state file that is garbage', async (t) => {
    node.agent.process.kill('SIGKILL')
    await node.agent.exited()
    writeFileSync(join(node.directory, 'state.json'), 'sextant garbage 9\n{"')
    node.agent = await node.startAgent()
    t.equal(await app.connect(www, ALLOWED_MS), 'open')
    t.equal(await app.connect(OTHER, DROPPED_MS), 'dropped')
    t.equal((await app.visit('n12.example.com', 443)).result, 'open')
  })

  await t.test('two processes side by side lose no query', async (t) => {
    let isOver = false
    const failed: string[] = []
    const asking = (async () => {
      for (let i = 0; !isOver; i = (i + 1) % 40) {
        const { result, rcode } = await app.visit(`n${i}.example.com`, 443)
        if (result !== 'open') failed.push(`n${i}: ${rcode} ${result}`)
      }
    })()
    const next = await node.startAgent(['-takeover'])
    node.agent.process.kill('SIGTERM')
    await node.agent.exited()
    node.agent = next
    t.equal((await app.visit('v2.example.com', 443)).result, 'open')
    isOver = true
    await asking
    t.strictSame(failed, [])
  })

  await t.test('`nft flush ruleset` is repaired', async (t) => {
    // This process has not seen the answers before the garbage: only the kernel has their addresses.
    t.equal((await app.visit('www.example.com', 443)).result, 'open')
    await node.host.run('nft', 'flush', 'ruleset')
    const isRepaired = async () => (await app.connect(OTHER, DROPPED_MS)) === 'dropped'
    await until(isRepaired, 'the table')
    t.equal(await app.connect(www, ALLOWED_MS), 'open')
    t.equal(await app.echo('long'), 'open')
  })

  await t.test('a Pod that gets the address of another one starts empty', async (t) => {
    node.putObjects(APP.objects.replaceAll('name: app,', 'name: successor,'))
    const isEmpty = async () => (await app.connect(www, DROPPED_MS)) === 'dropped'
    await until(isEmpty, 'the new Pod to be empty')
    t.equal((await app.visit('www.example.com', 443)).result, 'open')
  })

  await t.test('a policy that goes away', async (t) => {
    node.putObjects(pod('app', ['10.1.0.2', 'fd01::2']))
    const isFree = async () => (await app.connect(OTHER, DROPPED_MS)) === 'open'
    await until(isFree, 'the Pod to be free')
    t.notMatch(await node.ruleset(), /10\.1\.0\.2/)
  })
})
